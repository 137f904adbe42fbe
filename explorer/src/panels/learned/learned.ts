/** Small readings of a table of position vectors. */
import type { Tensor } from "../../lib/server.svelte";

/** (T, D) with a row for each channel: (D, T). */
export function turned({ shape: [T, D], values }: Tensor): Float32Array {
  return Float32Array.from({ length: T * D }, (_, i) => values[(i % T) * D + Math.floor(i / T)]);
}

/** Mean of the cosines (T, T) of positions `apart` from one another. */
export function meanCosine({ shape: [T], values }: Tensor, apart: number): number {
  let sum = 0;
  for (let i = 0; i + apart < T; i++) sum += values[i * T + i + apart];
  return sum / Math.max(1, T - apart);
}
