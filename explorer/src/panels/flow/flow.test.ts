import { expect, test } from "vitest";
import { half, key, unpack } from "../../lib/server.svelte";
import { column, largest } from "./flow";

test("numbers of 16 bits are read", () => {
  expect([0x3c00, 0xc000, 0x3555, 0x0001, 0x7c00, 0xfc00, 0].map(half)).toEqual([1, -2, 0.333251953125, 2 ** -24, Infinity, -Infinity, 0]);
});

test("a tensor comes out of base64 as it went in", () => {
  const data = btoa(String.fromCharCode(...new Uint8Array(Float32Array.of(1.5, -2, Infinity).buffer)));
  expect(Array.from(unpack({ shape: [3], dtype: "float32", data }).values)).toEqual([1.5, -2, Infinity]);
});

test("an answer has one name, whatever the order of its values", () => {
  expect(key("flow", { b: 1, a: "x" })).toBe(key("flow", { a: "x", b: 1 }));
});

test("a column of sizes is one token's, and the last query's favourite is found", () => {
  const tensor = { shape: [2, 3], values: Float32Array.of(1, 2, 3, 0.1, 0.7, 0.2) };
  expect(column(tensor, 2)[0]).toBe(3);
  expect(largest(tensor, ["a", "b", "c"], (x) => x.toFixed(1))).toEqual({ most: "b", share: "0.7" });
});
