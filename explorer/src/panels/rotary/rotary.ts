/** Rotary positions (Su et al. 2021, arXiv:2104.09864, eq. 15): pair i of queries and keys turns by p theta_i. */
export type Pairing = "half" | "interleaved";
export const KINDS = ["none", "linear", "ntk", "yarn", "llama3", "dynamic", "longrope", "proportional"] as const;
export type Kind = (typeof KINDS)[number];

/** How a longer context is read. factor: s; trained: L; length: of the text, for what depends on it; fraction: of the pairs that turn. */
export type Scaling = { kind: Kind; factor: number; trained: number; length: number; fraction: number };

/** theta_i = base^(-2i/d) of the d / 2 pairs, in radians per token. */
export function plain(base: number, d: number): number[] {
  return Array.from({ length: Math.floor(d / 2) }, (_, i) => base ** ((-2 * i) / d));
}

/** theta'_i under a scaling, as the library's positions/scaling.py has them. */
export function frequencies(base: number, d: number, s: Scaling): number[] {
  const thetas = plain(base, d);
  const stretched = (share: (i: number) => number) => thetas.map((theta, i) => (theta / s.factor) * share(i) + theta * (1 - share(i)));
  switch (s.kind) {
    case "none":
      return thetas;
    case "linear":
      return stretched(() => 1);
    case "ntk":
      return plain(base * s.factor ** (d / (d - 2)), d);
    case "dynamic": {
      const grown = (s.factor * Math.max(s.length, s.trained)) / s.trained - (s.factor - 1);
      return plain(base * grown ** (d / (d - 2)), d);
    }
    case "yarn": {
      const [low, high] = ramp(base, d, s.trained);
      return stretched((i) => Math.min(1, Math.max(0, (i - low) / (high - low))));
    }
    case "llama3":
      return stretched((i) => 1 - Math.min(1, Math.max(0, (turns(thetas[i], s.trained) - 1) / (4 - 1))));
    case "longrope":
      return s.length > s.trained ? thetas.map((theta, i) => theta / searched(i, thetas.length, s.factor)) : thetas;
    case "proportional": {
      const n = Math.floor((s.fraction * d) / 2);
      return thetas.map((theta, i) => (i < n ? theta / s.factor : 0));
    }
  }
}

/** Turns that a pair makes within the trained length. */
export function turns(theta: number, trained: number): number {
  return (trained * theta) / (2 * Math.PI);
}

/** YaRN's ramp: the pair up to which nothing changes, and that from which all is stretched (32 and 1 turns). */
export function ramp(base: number, d: number, trained: number): [number, number] {
  const pair = (n: number) => (d * Math.log(trained / (2 * Math.PI * n))) / (2 * Math.log(base));
  const [low, high] = [Math.max(Math.floor(pair(32)), 0), Math.min(Math.ceil(pair(1)), d - 1)];
  return [low, high === low ? high + 0.001 : high];
}

/** LongRoPE's factors are searched for each model; these rise evenly from 1 to s, as searched ones do on the whole. */
export function searched(i: number, pairs: number, factor: number): number {
  return factor ** (pairs === 1 ? 1 : i / (pairs - 1));
}

/** What cosines and sines are multiplied by. */
export function magnitude(s: Scaling): number {
  if (s.kind === "yarn") return 0.1 * Math.log(s.factor) + 1;
  if (s.kind === "longrope" && s.factor > 1) return Math.sqrt(1 + Math.log(s.factor) / Math.log(s.trained));
  return 1;
}

/** A vector turned to position p: the first 2 * thetas.length channels in pairs, the others as they are. */
export function turned(x: ArrayLike<number>, p: number, thetas: number[], pairing: Pairing, size = 1): number[] {
  const out = Array.from(x);
  const n = thetas.length;
  thetas.forEach((theta, i) => {
    const [a, b] = pairing === "half" ? [i, n + i] : [2 * i, 2 * i + 1];
    const [cos, sin] = [Math.cos(p * theta) * size, Math.sin(p * theta) * size];
    out[a] = x[a] * cos - x[b] * sin;
    out[b] = x[b] * cos + x[a] * sin;
  });
  return out;
}

/** The pair that a channel belongs to; -1 where it does not turn. */
export function pairOf(channel: number, pairs: number, pairing: Pairing): number {
  if (channel >= 2 * pairs) return -1;
  return pairing === "half" ? channel % pairs : Math.floor(channel / 2);
}

/** Channels in the other pairing's order: turning half of `order(x)` is `order` of turning x interleaved. */
export function reordered(x: ArrayLike<number>, pairs: number): number[] {
  const turning = Array.from({ length: pairs }, (_, i) => [x[2 * i], x[2 * i + 1]]);
  return [...turning.map(([a]) => a), ...turning.map(([, b]) => b), ...Array.from(x).slice(2 * pairs)];
}

export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  return Array.from(a).reduce((sum, x, i) => sum + x * b[i], 0);
}

/** n normal numbers that are the same for the same seed (mulberry32, Box-Muller). */
export function normal(n: number, seed: number): number[] {
  let state = (seed * 2654435761) >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return Array.from({ length: n }, () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()));
}

/** The score of a query and a key `distance` tokens before it, over their norms. */
export function scoreAt(q: number[], k: number[], distance: number, thetas: number[], pairing: Pairing, size = 1): number {
  return dot(turned(q, distance, thetas, pairing, size), turned(k, 0, thetas, pairing, size)) / Math.sqrt(dot(q, q) * dot(k, k));
}
