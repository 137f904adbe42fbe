/** Lessons over the panels: where each step looks, and a question whose answer a panel's own arithmetic gives. */
import { slope, softmax } from "../biases/biases";
import { held, layout, matrix } from "../masks/masks";
import { plain, turned } from "../rotary/rotary";
import { periods } from "../sinusoid/sinusoid";

/** steps: panel and state. answer: what the panel computes; room: how far off an answer may be rounded. */
export type Lesson = { name: string; minutes: number; steps: { panel: string; state: string }[]; answer: () => number; room: number };

const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1));

export const LESSONS: Lesson[] = [
  { name: "why", minutes: 5, steps: [{ panel: "order", state: "" }, { panel: "order", state: "position=off&both=true" }, { panel: "order", state: "position=off" }],
    answer: () => factorial(5), room: 0 },
  { name: "clocks", minutes: 6, steps: [{ panel: "sinusoid", state: "" }, { panel: "sinusoid", state: "p=60" }],
    answer: () => periods(64, 10000, "interleaved").filter((wave) => wave <= 100).length, room: 0 },
  { name: "table", minutes: 4, steps: [{ panel: "learned", state: "" }, { panel: "learned", state: "grow=interpolate" }],
    answer: () => 64, room: 0 },
  { name: "turning", minutes: 6, steps: [{ panel: "rotary", state: "" }, { panel: "rotary", state: "kind=yarn" }, { panel: "rotary", state: "m=5" }],
    answer: () => turned([1, 2, 3, 4], 1, plain(10000, 4), "interleaved")[0], room: 0.006 },
  { name: "slopes", minutes: 4, steps: [{ panel: "biases", state: "" }, { panel: "biases", state: "name=t5&causal=false" }],
    answer: () => Math.floor(Math.log(100) / slope(0, 8)) + 1, room: 0 },
  { name: "seeing", minutes: 5, steps: [{ panel: "masks", state: "kind=dense" }, { panel: "masks", state: "" }],
    answer: () => held("rolling", 11, 8)[0]!.position, room: 0 },
  { name: "flow", minutes: 7, steps: [{ panel: "flow", state: "" }, { panel: "flow", state: "before=true" }, { panel: "flow", state: "model=tiny-numbers-es-en" }],
    answer: () => matrix(layout("dense", 10, 0), { causal: true, window: 0, sinks: 0 }).filter(Boolean).length, room: 0 },
  { name: "writing", minutes: 5, steps: [{ panel: "generate", state: "" }, { panel: "generate", state: "strategy=beam&length=8" }],
    answer: () => 100 * softmax([1 / 0.5, 0])[0], room: 0.6 },
];

/** Whether what was typed is the answer; a decimal comma is as good as a point. */
export function isRight(lesson: Lesson, typed: string): boolean {
  const given = Number(typed.trim().replace("\u2212", "-").replace(",", "."));
  return typed.trim() !== "" && Math.abs(given - lesson.answer()) <= lesson.room + 1e-9;
}
