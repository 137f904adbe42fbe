/** A map of vectors: where dots go on the page, and which names have room beside them. */
import type { Tensor } from "../../lib/server.svelte";

export type Dot = { x: number; y: number };

/** Places (N, 2) fitted into a frame with a margin. */
export function frame({ shape: [n], values }: Tensor, width: number, height: number, margin: number): Dot[] {
  const axis = (k: number, size: number) => {
    const all = Array.from({ length: n }, (_, i) => values[2 * i + k]);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    return all.map((x) => (high > low ? margin + ((x - low) / (high - low)) * (size - 2 * margin) : size / 2));
  };
  const [xs, ys] = [axis(0, width), axis(1, height)];
  return xs.map((x, i) => ({ x, y: height - ys[i] }));
}

/** Of each dot the side on which its name has room, first come first served; "" where there is none. */
export function roomy(dots: Dot[], names: string[], size: number): ("left" | "right" | "")[] {
  const taken: [number, number, number, number][] = [];
  const right = Math.max(...dots.map((dot) => dot.x)) + 50;
  return dots.map((dot, i) => {
    const wide = names[i].length * size * 0.6;
    for (const side of ["right", "left"] as const) {
      const from = side === "right" ? dot.x + 8 : dot.x - 8 - wide;
      const box: [number, number, number, number] = [from, dot.y - size * 0.6, from + wide, dot.y + size * 0.6];
      const free = box[0] >= 0 && box[2] <= right && !taken.some((t) => t[0] < box[2] && box[0] < t[2] && t[1] < box[3] && box[1] < t[3]);
      if (free) {
        taken.push(box);
        return side;
      }
    }
    return "";
  });
}
