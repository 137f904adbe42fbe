/** What the library says, for tests: see golden.py. */
import golden from "../../golden.json";
import { expect } from "vitest";

type Case = { given: Record<string, unknown>; expected: unknown };

/** The cases of a panel. */
export function cases(section: keyof typeof golden): Case[] {
  return golden[section] as Case[];
}

/** Fails where two nested lists of numbers differ by more than 1e-6. */
export function expectSame(found: unknown, expected: unknown, path = ""): void {
  if (Array.isArray(expected)) {
    const list = Array.from(found as ArrayLike<unknown>);
    expect(list.length, `length of ${path || "it"}`).toBe(expected.length);
    expected.forEach((each, i) => expectSame(list[i], each, `${path}[${i}]`));
  } else if (expected !== null && typeof expected === "object") {
    for (const [key, each] of Object.entries(expected)) expectSame((found as Record<string, unknown>)[key], each, `${path}.${key}`);
  } else if (typeof expected === "number") {
    const room = 1e-6 * Math.max(1, Math.abs(expected));
    expect(Math.abs((found as number) - expected), `${path}: ${found} beside ${expected}`).toBeLessThanOrEqual(room);
  } else if (expected === "inf" || expected === "-inf") {
    expect(found, path).toBe(expected === "inf" ? Infinity : -Infinity);
  } else {
    expect(found, path).toBe(expected);
  }
}
