/** Sinusoidal positions (Vaswani et al. 2017, arXiv:1706.03762, section 3.5): PE[p, 2i] = sin(p w_i), PE[p, 2i+1] = cos(p w_i). */
export type Layout = "interleaved" | "concatenated" | "tensor2tensor";

/** w_i of every sine, ceil(D/2) of them, in radians per token. */
export function frequencies(d: number, base: number, layout: Layout): number[] {
  const pairs = Math.floor((d + 1) / 2);
  const last = Math.max(Math.floor(d / 2) - 1, 1);
  return Array.from({ length: pairs }, (_, i) => base ** (layout === "tensor2tensor" ? -i / last : (-2 * i) / d));
}

/** The vector of one position, (D,). */
export function vector(p: number, d: number, base: number, layout: Layout): Float64Array {
  const w = frequencies(d, base, layout);
  const out = new Float64Array(d);
  w.forEach((each, i) => {
    const [sin, cos] = [Math.sin(p * each), Math.cos(p * each)];
    if (layout === "interleaved") {
      out[2 * i] = sin;
      if (2 * i + 1 < d) out[2 * i + 1] = cos;
    } else {
      out[i] = sin;
      if (w.length + i < d) out[w.length + i] = cos;
    }
  });
  return out;
}

/** The table turned on its side: row c, column p is channel c of position p, (D, length). */
export function table(length: number, d: number, base: number, layout: Layout): Float64Array {
  const out = new Float64Array(length * d);
  for (let p = 0; p < length; p++) vector(p, d, base, layout).forEach((x, c) => (out[c * length + p] = x));
  return out;
}

/** PE(p) . PE(p + k) over |PE|^2 for k = 0 .. length - 1: the mean cosine, which p does not enter. */
export function similarity(length: number, d: number, base: number, layout: Layout): Float64Array {
  const w = frequencies(d, base, layout);
  return Float64Array.from({ length }, (_, k) => w.reduce((sum, each) => sum + Math.cos(k * each), 0) / w.length);
}

/** Tokens that each pair takes for one turn. */
export function periods(d: number, base: number, layout: Layout): number[] {
  return frequencies(d, base, layout).map((w) => (2 * Math.PI) / w);
}
