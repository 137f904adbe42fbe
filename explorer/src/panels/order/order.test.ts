import { expect, test } from "vitest";
import { swapped, wordsOf } from "./order";

test("two words change places, the others stay", () => {
  expect(swapped(wordsOf("  el perro mordió al hombre "), 1, 4).join(" ")).toBe("el hombre mordió al perro");
});
