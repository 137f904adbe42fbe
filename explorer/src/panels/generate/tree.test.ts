import { expect, test } from "vitest";
import { placed, type Node } from "./tree";

const node = (parent: number, p: number): Node => ({ parent, token: "x", logprob: Math.log(p), score: 0, end: null, place: null });

test("siblings have rows of their own, the likeliest goes straight on, and chances multiply", () => {
  const found = placed([node(-1, 0.6), node(-1, 0.4), node(0, 0.3), node(0, 0.7), node(1, 0.5)], 9);
  expect(found.map((each) => each.depth)).toEqual([1, 1, 2, 2, 2]);
  expect(found.map((each) => each.row)).toEqual([0, 2, 1, 0, 2]);
  expect(found[3].p).toBeCloseTo(0.42, 12);
  expect(placed([node(-1, 0.6), node(0, 1)], 1)).toHaveLength(1);
});
