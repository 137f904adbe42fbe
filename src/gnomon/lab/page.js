// Curves that answer when they are pointed at: values under the pointer, names that hide and show, a choice of protocol.
document.querySelectorAll("figure.live").forEach((figure) => {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const ns = "http://www.w3.org/2000/svg";
  const hidden = new Set();
  let protocol = data.protocols[0].key;
  const plot = figure.querySelector(".plot"), tip = figure.querySelector(".tip");
  const make = (name, attributes, parent, text) => {
    const node = document.createElementNS(ns, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.appendChild(node);
    return node;
  };
  const number = (x, digits) => x.toFixed(digits).replace(".", data.point);

  function draw() {
    const wide = plot.clientWidth || 640, high = Math.max(260, Math.min(400, wide * 0.6));
    const left = 46, right = 14, top = 12, bottom = 42;
    plot.replaceChildren();
    const svg = make("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, role: "img" }, plot);
    const shown = data.lines.filter((line) => !hidden.has(line.label));
    const values = shown.flatMap((line) => (line[protocol] || []).filter(Boolean).flatMap((p) => [p.low, p.high]));
    if (protocol === "fixed") values.push(data.trigram);
    if (!values.length) return;
    const low = Math.min(...values), high_ = Math.max(...values), room = Math.max(high_ - low, 0.2) * 0.06;
    const first = Math.log2(data.lengths[0]), last = Math.log2(data.lengths[data.lengths.length - 1]);
    const x = (n) => left + ((Math.log2(n) - first) / (last - first || 1)) * (wide - left - right);
    const y = (v) => top + ((high_ + room - v) / (high_ - low + 2 * room)) * (high - top - bottom);
    const step = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2].find((s) => (high_ - low + 2 * room) / s < 8) || 5;
    for (let v = Math.ceil((low - room) / step) * step; v < high_ + room; v += step) {
      make("line", { x1: left, x2: wide - right, y1: y(v), y2: y(v), class: "grid" }, svg);
      make("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, svg, number(v, step < 0.1 ? 2 : 1));
    }
    data.lengths.forEach((n, i) => make("text", { x: x(n), y: high - bottom + 18, "text-anchor": "middle" }, svg, data.written[i]));
    make("text", { x: (left + wide - right) / 2, y: high - 6, "text-anchor": "middle" }, svg, data.axis);
    if (protocol === "fixed") {
      make("line", { x1: left, x2: wide - right, y1: y(data.trigram), y2: y(data.trigram), class: "floor" }, svg);
      make("text", { x: wide - right, y: y(data.trigram) - 5, "text-anchor": "end" }, svg, data.floor);
    }
    shown.forEach((line) => {
      const points = (line[protocol] || []).map((p, i) => p && { n: data.lengths[i], ...p }).filter(Boolean);
      const style = `stroke:${line.colour}`;
      points.forEach((p) => make("line", { x1: x(p.n), x2: x(p.n), y1: y(p.low), y2: y(p.high), style, class: "bar" }, svg));
      make("polyline", { points: points.map((p) => `${x(p.n)},${y(p.value)}`).join(" "), style, class: "curve" }, svg);
      points.forEach((p) => make("circle", { cx: x(p.n), cy: y(p.value), r: 4, style: `fill:${line.colour}` }, svg));
    });
    const rule = make("line", { y1: top, y2: high - bottom, class: "rule" }, svg);
    const point = (event) => {
      const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * wide;
      const i = data.lengths.reduce((best, n, j) => (Math.abs(x(n) - at) < Math.abs(x(data.lengths[best]) - at) ? j : best), 0);
      rule.setAttribute("x1", x(data.lengths[i]));
      rule.setAttribute("x2", x(data.lengths[i]));
      rule.classList.add("on");
      const rows = shown.map((line) => [line, (line[protocol] || [])[i]]).filter(([, p]) => p);
      rows.sort((a, b) => a[1].value - b[1].value);
      tip.replaceChildren();
      const head = document.createElement("b");
      head.textContent = `n = ${data.written[i]}`;
      tip.append(head);
      rows.forEach(([line, p]) => {
        const row = document.createElement("div"), dot = document.createElement("span");
        dot.className = "dot";
        dot.style.background = line.colour;
        row.append(dot, `${line.label} ${number(p.value, 3)} [${number(p.low, 3)}; ${number(p.high, 3)}]`);
        tip.append(row);
      });
      tip.hidden = false;
      const aside = x(data.lengths[i]) + 14 + tip.offsetWidth > wide;
      tip.style.left = `${Math.max(0, aside ? x(data.lengths[i]) - tip.offsetWidth - 14 : x(data.lengths[i]) + 14)}px`;
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", () => { tip.hidden = true; rule.classList.remove("on"); });
  }

  const names = figure.querySelector(".names");
  data.lines.forEach((line) => {
    const button = document.createElement("button"), dot = document.createElement("span");
    dot.className = "dot";
    dot.style.background = line.colour;
    button.type = "button";
    button.append(dot, line.label);
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      if (!hidden.delete(line.label)) hidden.add(line.label);
      button.setAttribute("aria-pressed", String(!hidden.has(line.label)));
      draw();
    });
    names.append(button);
  });
  if (data.protocols.length > 1) {
    const choice = document.createElement("select");
    choice.setAttribute("aria-label", data.choose);
    data.protocols.forEach((p) => choice.add(new Option(p.name, p.key)));
    choice.addEventListener("change", () => { protocol = choice.value; draw(); });
    names.before(choice);
  }
  figure.classList.add("drawn");
  draw();
  addEventListener("resize", draw);
});
