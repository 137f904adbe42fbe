/** Colours keep their meaning, as in the package's pictures: blue and orange tell two things apart for every kind of
 * colour vision, red to blue is for signed values, white to blue for shares, dark to light for things in order. */
export type Scale = "signed" | "share" | "ordered" | "mask";
type Rgb = [number, number, number];

const LIGHT: Record<Scale, string[]> = {
  signed: ["053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b", "67001f"],
  share: ["f7fafd", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b"],
  mask: ["d6722a", "f1c9a5", "eef1f5", "8fb8dd", "2166ac"],
  ordered: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
};
const DARK: Record<Scale, string[]> = {
  signed: ["a9d4f5", "6fb1e4", "3f88c5", "275d8c", "1a3a56", "171c24", "4a2420", "84352a", "c0513c", "e98667", "ffc9b0"],
  share: ["171c24", "1a2c40", "1c3f5f", "1f5583", "2a6ea8", "4089c6", "68a8dd", "9bc8ee", "d6eafb"],
  mask: ["f0955a", "6b3f22", "1f2630", "2a557c", "6fb1e4"],
  ordered: LIGHT.ordered,
};

/** 256 colours of a scale, as r, g, b, a bytes. */
export function table(scale: Scale, dark: boolean): Uint8ClampedArray {
  const anchors = (dark ? DARK : LIGHT)[scale].map(rgb);
  const out = new Uint8ClampedArray(1024);
  for (let i = 0; i < 256; i++) out.set([...between(anchors, i / 255), 255], 4 * i);
  return out;
}

/** One colour of a scale at a share from 0 to 1. */
export function at(scale: Scale, share: number, dark: boolean): string {
  const [r, g, b] = between((dark ? DARK : LIGHT)[scale].map(rgb), Math.min(1, Math.max(0, share)));
  return `rgb(${r.toFixed(0)} ${g.toFixed(0)} ${b.toFixed(0)})`;
}

/** n colours for things in order, from dark to light, without the palest. */
export function inOrder(n: number, dark: boolean): string[] {
  const [from, to] = dark ? [0.3, 1] : [0, 0.85];
  return Array.from({ length: n }, (_, i) => at("ordered", n === 1 ? from : from + ((to - from) * i) / (n - 1), dark));
}

function rgb(hex: string): Rgb {
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Rgb;
}

function between(anchors: Rgb[], share: number): Rgb {
  const place = share * (anchors.length - 1);
  const i = Math.min(Math.floor(place), anchors.length - 2);
  return anchors[i].map((x, c) => x + (anchors[i + 1][c] - x) * (place - i)) as Rgb;
}
