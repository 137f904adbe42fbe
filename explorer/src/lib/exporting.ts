/** Pictures and tables as files. A picture on the page is an <svg>, over a <canvas> where there are many cells. */
const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "fill-opacity", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];
const NS = "http://www.w3.org/2000/svg";

export type Table = { columns: string[]; rows: (string | number)[][] };

/** The picture inside `root` as the text of an SVG file: styles written out, canvas cells as an image. */
export function svgText(root: HTMLElement, title: string): string {
  const drawn = root.querySelector<SVGSVGElement>("svg.picture")!;
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const from = drawn.querySelectorAll("*");
  copy.querySelectorAll("*").forEach((element, i) => {
    const style = getComputedStyle(from[i]);
    for (const name of LOOK) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
  });
  const { width, height } = drawn.getBoundingClientRect();
  copy.setAttribute("xmlns", NS);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const canvas = root.querySelector("canvas");
  if (canvas) copy.prepend(image(canvas, drawn));
  copy.prepend(ground(width, height, getComputedStyle(document.body).backgroundColor));
  const name = document.createElementNS(NS, "title");
  name.textContent = title;
  copy.prepend(name);
  return new XMLSerializer().serializeToString(copy);
}

function image(canvas: HTMLCanvasElement, beside: SVGSVGElement): SVGImageElement {
  const [inner, outer] = [canvas.getBoundingClientRect(), beside.getBoundingClientRect()];
  const made = document.createElementNS(NS, "image");
  const place = { x: inner.x - outer.x, y: inner.y - outer.y, width: inner.width, height: inner.height };
  for (const [name, value] of Object.entries(place)) made.setAttribute(name, String(value));
  made.setAttribute("preserveAspectRatio", "none");
  made.setAttribute("image-rendering", "pixelated");
  made.setAttribute("href", canvas.toDataURL());
  return made;
}

function ground(width: number, height: number, colour: string): SVGRectElement {
  const made = document.createElementNS(NS, "rect");
  made.setAttribute("width", String(width));
  made.setAttribute("height", String(height));
  made.setAttribute("fill", colour);
  return made;
}

/** Save the picture inside `root` as an SVG file. */
export function saveSvg(root: HTMLElement, name: string): void {
  download(new Blob([svgText(root, name)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Save the picture inside `root` as a PNG file, at twice its size on the page. */
export async function savePng(root: HTMLElement, name: string): Promise<void> {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(root, name))}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * picture.width;
  canvas.height = 2 * picture.height;
  const context = canvas.getContext("2d")!;
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) download(blob, `${name}.png`);
}

/** Numbers with a decimal point and commas between: what programs read, in every language. */
export function csvText({ columns, rows }: Table): string {
  const cell = (value: string | number) => {
    const text = String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** Save a table as a CSV file; the mark at its head tells spreadsheets that it is UTF-8. */
export function saveCsv(table: Table, name: string): void {
  download(new Blob(["\ufeff", csvText(table)], { type: "text/csv" }), `${name}.csv`);
}

function download(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
