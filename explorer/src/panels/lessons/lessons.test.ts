import { expect, test } from "vitest";
import { isRight, LESSONS } from "./lessons";
import texts from "./texts.json";

const answers = { why: "120", clocks: "10", table: "64", turning: "-1,14", slopes: "10", seeing: "8", flow: "55", writing: "88" };

test.each(LESSONS)("the answer of $name is computed, and told from a wrong one", (lesson) => {
  const right = answers[lesson.name as keyof typeof answers];
  expect(isRight(lesson, right)).toBe(true);
  expect(isRight(lesson, String(Number(right.replace(",", ".")) + 1))).toBe(false);
  expect(isRight(lesson, "")).toBe(false);
});

test("each lesson and step has its text", () => {
  for (const { name, steps } of LESSONS) {
    for (const key of ["title", "key", "question", ...steps.keys()]) expect(texts).toHaveProperty(`${name}_${key}`);
  }
});
