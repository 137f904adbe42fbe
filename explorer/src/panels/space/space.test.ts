import { expect, test } from "vitest";
import { frame, roomy } from "./space";

test("places fill the frame, up is up", () => {
  const dots = frame({ shape: [3, 2], values: Float32Array.of(0, 0, 1, 1, 0.5, 0.5) }, 100, 50, 10);
  expect(dots).toEqual([{ x: 10, y: 40 }, { x: 90, y: 10 }, { x: 50, y: 25 }]);
});

test("no two names lie over each other", () => {
  expect(roomy([{ x: 100, y: 20 }, { x: 102, y: 20 }, { x: 101, y: 21 }], ["aaaa", "bbbb", "cccc"], 12)).toEqual(["right", "left", ""]);
});
