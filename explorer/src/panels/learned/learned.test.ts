import { expect, test } from "vitest";
import { meanCosine, turned } from "./learned";

test("a table is turned on its side", () => {
  expect(Array.from(turned({ shape: [2, 3], values: Float32Array.of(1, 2, 3, 4, 5, 6) }))).toEqual([1, 4, 2, 5, 3, 6]);
});

test("the mean over positions so far apart", () => {
  expect(meanCosine({ shape: [3, 3], values: Float32Array.of(1, 0.5, 0, 0, 1, 0.25, 0, 0, 1) }, 1)).toBeCloseTo(0.375, 6);
});
