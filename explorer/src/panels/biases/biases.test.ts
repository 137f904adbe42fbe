import { expect, test } from "vitest";
import { cases, expectSame } from "../../lib/golden";
import { biases, bucketing, share, slope, softmax, type Settings } from "./biases";

const of = cases("biases");

test.each(of.filter(({ given }) => "name" in given))("the bias is the library's, $given.name of $given.heads heads, causal $given.causal", ({ given, expected }) => {
  const { gaps, query, ...settings } = given as unknown as Settings & { gaps: number[]; query: number };
  const bias = biases(settings);
  expectSame(Array.from({ length: settings.heads }, (_, h) => gaps.map((gap) => bias(h, query, query + gap))), expected);
});

test.each(of.filter(({ given }) => "buckets" in given && !("name" in given)))("T5's buckets are the library's, $given", ({ given, expected }) => {
  const { buckets, furthest, causal, gaps } = given as { buckets: number; furthest: number; causal: boolean; gaps: number[] };
  expectSame(gaps.map(bucketing(buckets, furthest, causal)), expected);
});

test.each(of.filter(({ given }) => "pairs" in given))("FIRE's share is the library's", ({ given, expected }) => {
  const { pairs, threshold } = given as { pairs: [number, number][]; threshold: number };
  expectSame(pairs.map(([q, k]) => share(q, k, threshold)), expected);
});

test("slopes of a power of two halve from head to head", () => {
  expectSame(Array.from({ length: 8 }, (_, h) => slope(h, 8)), [1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** -i));
});

test("weights add up to 1, and a row that sees nothing is 0", () => {
  expect(softmax([0, -1, -Infinity]).reduce((a, b) => a + b)).toBeCloseTo(1, 12);
  expect(softmax([-Infinity, -Infinity])).toEqual([0, 0]);
});
