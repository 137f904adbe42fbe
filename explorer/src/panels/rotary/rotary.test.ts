import { expect, test } from "vitest";
import { cases, expectSame } from "../../lib/golden";
import { dot, frequencies, magnitude, normal, plain, reordered, scoreAt, turned, type Pairing, type Scaling } from "./rotary";

type Given = { base: number; d: number; scaling: Scaling };
const of = cases("rotary");

test.each(of.filter(({ given }) => "scaling" in given))("frequencies are the library's, $given", ({ given, expected }) => {
  const { base, d, scaling } = given as Given;
  expectSame({ frequencies: frequencies(base, d, scaling), magnitude: magnitude(scaling) }, expected);
});

test.each(of.filter(({ given }) => "x" in given))("a turned vector is the library's, $given", ({ given, expected }) => {
  const { x, p, pairing, base, width } = given as { x: number[]; p: number; pairing: Pairing; base: number; width: number };
  expectSame(turned(x, p, plain(base, width), pairing), expected);
});

test("scores see distance alone, and the pairings differ by an order of channels", () => {
  const [q, k] = [normal(16, 1), normal(16, 2)];
  const thetas = plain(10000, 12);
  const at = (m: number, n: number) => dot(turned(q, m, thetas, "interleaved"), turned(k, n, thetas, "interleaved"));
  expect(at(25, 20)).toBeCloseTo(at(5, 0), 9);
  expect(at(5, 0) / Math.sqrt(dot(q, q) * dot(k, k))).toBeCloseTo(scoreAt(q, k, 5, thetas, "interleaved"), 9);
  expectSame(turned(reordered(q, 6), 7, thetas, "half"), reordered(turned(q, 7, thetas, "interleaved"), 6));
});
