import { expect, test } from "vitest";
import { filled, number } from "./words.svelte";

const N = "\u202f";

test.each([
  [1234.5, { fixed: 2 }, `1${N}234.50`, `1${N}234,50`],
  [1024, {}, `1${N}024`, `1${N}024`],
  [-0.25, {}, "−0.25", "−0,25"],
  [1.2e-7, { digits: 2 }, "1.2e-7", "1,2e-7"],
  [438512, { digits: 4 }, `438${N}500`, `438${N}500`],
  [-0.0001, { fixed: 2 }, "0.00", "0,00"],
  [Infinity, {}, "∞", "∞"],
])("%s is written as each language writes numbers", (x, digits, english, spanish) => {
  expect(number(x, digits, "en")).toBe(english);
  expect(number(x, digits, "es")).toBe(spanish);
  expect(number(x, digits, "pt")).toBe(spanish);
});

test("fields are filled in, and a noun goes with its number", () => {
  expect(filled("{n} {n:row|rows} of {all}", { n: 1, all: 2500 }, "es")).toBe(`1 row of 2${N}500`);
  expect(filled("{n} {n:row|rows}", { n: 2 }, "en")).toBe("2 rows");
});
