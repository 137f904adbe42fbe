import { expect, test } from "vitest";
import { cases, expectSame } from "../../lib/golden";
import { similarity, table, vector, type Layout } from "./sinusoid";

type Given = { length: number; d: number; base: number; layout: Layout };

test.each(cases("sinusoid"))("the table is the library's, $given", ({ given, expected }) => {
  const { length, d, base, layout } = given as Given;
  const rows = Array.from({ length }, (_, p) => vector(p, d, base, layout));
  expectSame(rows, expected);
  const turned = table(length, d, base, layout);
  expectSame(rows.flatMap((row) => Array.from(row)), rows.flatMap((_, p) => Array.from({ length: d }, (_, c) => turned[c * length + p])));
});

test("the cosine of two positions depends on their distance alone", () => {
  const alike = similarity(40, 32, 10000, "interleaved");
  for (const p of [0, 7, 30]) {
    for (const k of [0, 1, 9]) {
      const [a, b] = [vector(p, 32, 10000, "interleaved"), vector(p + k, 32, 10000, "interleaved")];
      const cosine = a.reduce((sum, x, c) => sum + x * b[c], 0) / 16;
      expect(cosine).toBeCloseTo(alike[k], 12);
    }
  }
});
