/** Biases on scores, by head and position, as the library's positions/{alibi,hard_alibi,kerple,fire,sandwich,t5}.py have them. */
export const NAMES = ["alibi", "t5", "kerple", "fire", "sandwich", "hard-alibi"] as const;
export type Name = (typeof NAMES)[number];

/** heads: H. causal: keys after a query are not seen. What is learned (r1, r2, T5's table, FIRE's curve) is an example. */
export type Settings = {
  name: Name; heads: number; causal: boolean; split: boolean; buckets: number; furthest: number;
  power: boolean; r1: number; r2: number; threshold: number; width: number; base: number;
};

/** ALiBi's slope of a head: 2^(-8 (h+1) / c), and between those for the heads past the largest power of two c. */
export function slope(head: number, heads: number): number {
  const c = 2 ** Math.floor(Math.log2(heads));
  return 2 ** (head < c ? (-8 * (head + 1)) / c : (-4 * (2 * (head - c) + 1)) / c);
}

/** First distance of each logarithmic bucket of T5: the least r with r^log >= max^j exact^(log-j), by whole numbers. */
export function edges(exact: number, logarithmic: number, furthest: number): number[] {
  const [e, n, m] = [BigInt(exact), BigInt(logarithmic), BigInt(furthest)];
  return Array.from({ length: logarithmic }, (_, j) => {
    let [low, high] = [exact, furthest];
    const limit = m ** BigInt(j) * e ** (n - BigInt(j));
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (BigInt(middle) ** n >= limit) high = middle;
      else low = middle + 1;
    }
    return low;
  });
}

/** The function from key - query to T5's bucket. */
export function bucketing(buckets: number, furthest: number, causal: boolean): (gap: number) => number {
  const n = causal ? buckets : buckets / 2;
  const exact = Math.floor(n / 2);
  const firsts = edges(exact, n - exact, furthest);
  return (gap) => {
    const back = causal ? Math.max(-gap, 0) : Math.abs(gap);
    const side = !causal && gap > 0 ? n : 0;
    return side + (back < exact ? back : exact - 1 + firsts.filter((first) => back >= first).length);
  };
}

/** The bias of every head between a query and a key: a function of (head, query, key). */
export function biases(s: Settings): (head: number, q: number, k: number) => number {
  switch (s.name) {
    case "alibi": {
      const half = s.heads / 2;
      const split = s.split && !s.causal && s.heads % 2 === 0;
      return (h, q, k) => {
        if (split && (h < half ? q < k : q > k)) return -Infinity;
        return -slope(split ? h % half : h, split ? half : s.heads) * Math.abs(q - k);
      };
    }
    case "hard-alibi": {
      const windows = Math.floor((s.heads + 1) / 2);
      return (h, q, k) => (h < windows && Math.abs(q - k) > h ? -Infinity : 0);
    }
    case "kerple":
      return (h, q, k) => {
        const [r1, r2] = [rate(s.r1, h, s.heads), s.r2];
        return -r1 * (s.power ? Math.abs(q - k) ** r2 : Math.log1p(r2 * Math.abs(q - k)));
      };
    case "sandwich": {
      const pairs = s.width / 2;
      return (h, q, k) => {
        let total = 0;
        for (let i = 1; i <= pairs; i++) total += Math.cos((q - k) * s.base ** ((-2 * i) / s.width));
        return ((total - pairs) * s.heads) / (8 * (h + 1));
      };
    }
    case "fire":
      return (h, q, k) => -rate(6, h, s.heads) * share(q, k, s.threshold);
    case "t5": {
      const bucket = bucketing(s.buckets, s.furthest, s.causal);
      return (h, q, k) => weight(bucket(k - q), h, s);
    }
  }
}

/** FIRE's psi(|q - k|) / psi(max(L, q)), with psi(x) = log(1 + c x) and the c = 0.1 that it starts with. */
export function share(q: number, k: number, threshold: number, c = 0.1): number {
  return Math.log1p(c * Math.abs(q - k)) / (Math.log1p(c * Math.max(q, threshold)) + 1e-6);
}

/** An example of what heads learn: the first one falls steeply, the last hardly. */
function rate(most: number, head: number, heads: number): number {
  return (most * (heads - head)) / heads;
}

/** An example of T5's learned table: near buckets above far ones, steeper in the first heads, a little lower ahead. */
function weight(bucket: number, head: number, s: Settings): number {
  const n = s.causal ? s.buckets : s.buckets / 2;
  const ahead = bucket >= n;
  return 1 - (rate(5, head, s.heads) * (bucket % n)) / (n - 1) - (ahead ? 0.4 : 0);
}

/** Softmax over what is seen: weights of keys whose contents score alike, by the bias alone. */
export function softmax(scores: number[]): number[] {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const e = scores.map((x) => Math.exp(x - top));
  const z = e.reduce((sum, x) => sum + x, 0);
  return e.map((x) => x / z);
}
