/** What the server says of a text on its way through a model, and small readings of it. */
import type { Tensor } from "../../lib/server.svelte";

export type Side = "reader" | "writer";
export const STAGES = ["token", "position", "input", "attention", "feed_forward", "layer", "output"] as const;
export type Stage = (typeof STAGES)[number];
export type Candidate = { id: number; token: string; logit: number; p: number };
export type Flow = {
  architecture: string; layers: number; heads: number; width: number; encodings: string[];
  tokens: string[]; ids: number[]; source: string[] | null;
  size: { token: Tensor; position: Tensor | null; stream: Tensor; attention: Tensor; cross: Tensor | null; feed_forward: Tensor };
  entropy: Tensor; weights: Tensor; scores: Tensor; cross: Tensor | null; cross_scores: Tensor | null;
  answer: "next" | "each" | "classes" | "vector"; candidates: Candidate[][];
};

/** A first text for a model: what the small ones of the package were made to read, else a sentence. */
export function sentence(model: string): string {
  if (model.includes("numbers-es")) return "doscientos cuarenta y uno";
  if (model.startsWith("tiny-")) return "def __init__(self, name):";
  return "The dog bit the man because it was hungry.";
}

/** The numbers (L,) of one token of sizes (L, T). */
export function column({ shape, values }: Tensor, token: number): number[] {
  return Array.from({ length: shape[0] }, (_, row) => values[row * shape[1] + token]);
}

/** Numbers by cell, NaN where the scores say that a query does not look. */
export function withoutMasked(values: ArrayLike<number>, scores: ArrayLike<number>): Float32Array {
  const out = new Float32Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = scores[i] === -Infinity ? NaN : values[i];
  return out;
}

/** What the last query looks at most, and how much. */
export function largest({ shape, values }: Tensor, names: string[], written: (x: number) => string): { most: string; share: string } {
  const row = Array.from(values.slice((shape[0] - 1) * shape[1]));
  const best = row.indexOf(Math.max(...row));
  return { most: names[best], share: written(row[best]) };
}
