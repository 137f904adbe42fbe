/** Where each token sits, who sees whom, and what a cache holds, as the library's layout.py has them. */
export const KINDS = ["dense", "left", "right", "packed", "prefix"] as const;
export type Kind = (typeof KINDS)[number];

/** pos: what encodings read. step: order in time. doc: which document; -1 is padding. */
export type Slot = { pos: number; step: number; doc: number };

/** T tokens of a kind; n: how many are padding, are the prefix, or are each document's. */
export function layout(kind: Kind, T: number, n: number): Slot[] {
  return Array.from({ length: T }, (_, i) => {
    switch (kind) {
      case "dense":
        return { pos: i, step: i, doc: 0 };
      case "left": {
        const at = Math.max(0, i - n);
        return { pos: at, step: at, doc: i < n ? -1 : 0 };
      }
      case "right": {
        const at = Math.min(i, Math.max(0, T - n - 1));
        return { pos: at, step: at, doc: i < T - n ? 0 : -1 };
      }
      case "packed":
        return { pos: i % Math.max(1, n), step: i, doc: Math.floor(i / Math.max(1, n)) };
      case "prefix":
        return { pos: i, step: i < n ? n - 1 : i, doc: 0 };
    }
  });
}

export type Rules = { causal: boolean; window: number; sinks: number };

/** Whether a query sees a key: the same document, not padding, in time, within the window or among the sinks. window 0: none. */
export function sees(q: Slot, k: Slot, { causal, window, sinks }: Rules): boolean {
  const gap = q.step - k.step;
  if (q.doc !== k.doc || k.doc < 0 || (causal && gap < 0)) return false;
  const near = window === 0 || (causal ? gap < window : Math.abs(gap) < window);
  return near || k.pos < sinks;
}

/** The whole matrix, a row for each query, with cells turned over by hand. */
export function matrix(slots: Slot[], rules: Rules, edits: Set<number> = new Set()): boolean[] {
  return slots.flatMap((q, i) => slots.map((k, j) => sees(q, k, rules) !== edits.has(i * slots.length + j)));
}

/** What the edits broke: cells that see what they must not, and cells that no longer see what they may. */
export function broken(slots: Slot[], rules: Rules, edits: Set<number>): { leaks: number; hidden: number; blind: number } {
  const T = slots.length;
  const now = matrix(slots, rules, edits);
  let [leaks, hidden, blind] = [0, 0, 0];
  for (const cell of edits) now[cell] ? leaks++ : hidden++;
  slots.forEach((q, i) => {
    if (q.doc >= 0 && !now.slice(i * T, (i + 1) * T).some(Boolean)) blind++;
  });
  return { leaks, hidden, blind };
}

export type Cache = "growing" | "preallocated" | "rolling";
export type Held = { position: number; fresh: boolean } | null;

/** The slots of a cache after `read` tokens, the last of them new. A rolling one of `size` slots writes over the oldest. */
export function held(kind: Cache, read: number, size: number): Held[] {
  if (kind === "growing") return Array.from({ length: read }, (_, i) => ({ position: i, fresh: i === read - 1 }));
  if (kind === "preallocated") return Array.from({ length: size }, (_, i) => (i < read ? { position: i, fresh: i === read - 1 } : null));
  return Array.from({ length: size }, (_, slot) => {
    const newest = read - 1 - ((((read - 1 - slot) % size) + size) % size);
    return newest >= 0 ? { position: newest, fresh: newest === read - 1 } : null;
  });
}
