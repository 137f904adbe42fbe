/** Axes of pictures: where a number goes, and which numbers are written beside it. */
import { scaleLinear, scaleLog, scaleSymlog } from "d3-scale";
import { number } from "../lib/words.svelte";

export type Kind = "linear" | "log" | "symlog";
export type Axis = { place: (x: number) => number; back: (p: number) => number; ticks: { value: number; at: number; text: string }[] };

/** An axis from `domain` to pixels `range`, with about one mark every `gap` pixels. */
export function axis(kind: Kind, domain: [number, number], range: [number, number], gap = 64): Axis {
  const scale = kind === "log" ? scaleLog() : kind === "symlog" ? scaleSymlog() : scaleLinear();
  scale.domain(domain).range(range);
  const most = Math.max(2, Math.floor(Math.abs(range[1] - range[0]) / gap));
  const values = kind === "linear" ? (scale.ticks(most) as number[]) : decades(kind, domain, most);
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : 1;
  const fixed = kind === "linear" ? Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9))) : undefined;
  const text = (x: number) => (fixed === undefined ? number(x, { digits: 3 }) : number(x, { fixed }));
  return {
    place: (x) => scale(x) as number,
    back: (p) => scale.invert(p) as number,
    ticks: values.map((value) => ({ value, at: scale(value) as number, text: text(value) })),
  };
}

function decades(kind: Kind, [low, high]: [number, number], most: number): number[] {
  const from = kind === "symlog" ? 0 : Math.ceil(Math.log10(low) - 1e-9);
  const to = Math.floor(Math.log10(high) + 1e-9);
  const all = Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => 10 ** (from + i));
  const every = Math.ceil(all.length / most);
  const some = all.filter((_, i) => i % every === 0);
  const fine = some.length < 3 ? all.flatMap((x) => [x, 2 * x, 5 * x]).filter((x) => x >= low && x <= high) : some;
  return kind === "symlog" ? [0, ...fine] : fine.length ? fine : [low, high];
}

/** The smallest and the largest finite number of some, with a little room; never an empty range. */
export function extent(values: Iterable<number>, room = 0.04): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const x of values) {
    if (!Number.isFinite(x)) continue;
    if (x < low) low = x;
    if (x > high) high = x;
  }
  if (low > high) return [0, 1];
  const pad = (high - low) * room || Math.abs(low) * 0.1 || 1;
  return [low - pad, high + pad];
}
