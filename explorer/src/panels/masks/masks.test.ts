import { expect, test } from "vitest";
import { cases } from "../../lib/golden";
import { broken, held, layout, matrix, type Kind, type Rules } from "./masks";

test.each(cases("masks"))("who sees whom is the library's, $given", ({ given, expected }) => {
  const { kind, length, n, ...rules } = given as { kind: Kind; length: number; n: number } & Rules;
  const { pos, rows } = expected as { pos: number[]; rows: string[] };
  const slots = layout(kind, length, n);
  const found = matrix(slots, rules);
  slots.forEach((q, i) => {
    const row = found.slice(i * length, (i + 1) * length).map((x) => (x ? "1" : "0")).join("");
    if (q.doc >= 0) expect([q.pos, row]).toEqual([pos[i], rows[i]]);
  });
});

test("a cell turned over by hand is told for what it is", () => {
  const slots = layout("dense", 4, 0);
  const rules = { causal: true, window: 0, sinks: 0 };
  expect(broken(slots, rules, new Set([1]))).toEqual({ leaks: 1, hidden: 0, blind: 0 });
  expect(broken(slots, rules, new Set([0]))).toEqual({ leaks: 0, hidden: 1, blind: 1 });
});

test("a rolling cache holds the newest tokens, each where its position says", () => {
  expect(held("rolling", 6, 4).map((slot) => slot?.position)).toEqual([4, 5, 2, 3]);
  expect(held("rolling", 2, 4).map((slot) => slot?.position)).toEqual([0, 1, undefined, undefined]);
  expect(held("growing", 3, 4)).toHaveLength(3);
  expect(held("preallocated", 3, 4)[3]).toBeNull();
});
