/** Questions to the server that the page came from, or to the answers that were recorded with an exported page. */
import { texts } from "./words.svelte";
import catalogue from "./interface.json";

export type Packed = { shape: number[]; dtype: "float32" | "float16" | "int32"; data: string };
export type Tensor = { shape: number[]; values: Float32Array | Int32Array };
export type Values = Record<string, string | number | boolean | null | string[] | number[]>;
export type Recording = { models: string[]; texts: Record<string, string[]>; answers: Record<string, unknown> };

const t = texts(catalogue);
const recording = (globalThis as { GNOMON_RECORDING?: Recording }).GNOMON_RECORDING;

/** The models there are; what was recorded of them, on a page without a server. */
export const server = $state<{ models: string[]; asked: boolean; away: boolean }>({ models: recording?.models ?? [], asked: !!recording, away: false });
export const recorded = recording !== undefined;

/** Texts that an exported page has answers for. */
export function recordedTexts(panel: string, model: string): string[] {
  return recording?.texts[`${panel} ${model}`] ?? [];
}

/** Learn which models there are; once. */
export async function meet(): Promise<void> {
  if (server.asked) return;
  server.asked = true;
  try {
    const answer = await fetch("./api/models");
    server.models = answer.ok ? (await answer.json()).models.map((model: { name: string }) => model.name) : [];
  } catch {
    server.away = true;
  }
}

/** The name under which an answer is recorded. */
export function key(question: string, values: Values): string {
  return `${question} ${JSON.stringify(Object.fromEntries(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1))))}`;
}

/** The answer to a question, its tensors unpacked. Throws an Error whose message is for the reader. */
export async function ask<T>(question: string, values: Values, signal?: AbortSignal): Promise<T> {
  if (recording) {
    const found = recording.answers[key(question, values)];
    if (found === undefined) throw new Error(t("not_recorded"));
    return unpacked(found) as T;
  }
  const answer = await sent(question, values, signal);
  const said = await answer.json().catch(() => ({ error: t("server_failed") }));
  if (!answer.ok) throw new Error(said.error ?? t("server_failed"));
  return unpacked(said) as T;
}

/** Events of a question that is answered bit by bit, one JSON object each. */
export async function* follow<T>(question: string, values: Values, signal: AbortSignal): AsyncGenerator<T> {
  if (recording) {
    const found = recording.answers[key(question, values)] as T[] | undefined;
    if (!found) throw new Error(t("not_recorded"));
    yield* found;
    return;
  }
  const answer = await sent(question, values, signal);
  if (!answer.ok || !answer.body) throw new Error((await answer.json().catch(() => ({}))).error ?? t("server_failed"));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read().catch((error: Error) => Promise.reject(error.name === "AbortError" ? error : new Error(t("server_away"))));
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const said = JSON.parse(event.replace(/^data: /, ""));
      if (said.error) throw new Error(said.error);
      yield said as T;
    }
  }
}

async function sent(question: string, values: Values, signal?: AbortSignal): Promise<Response> {
  try {
    const answer = await fetch(`./api/${question}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(values), signal });
    server.away = false;
    return answer;
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    server.away = true;
    throw new Error(t("server_away"));
  }
}

function unpacked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpacked);
  if (value === null || typeof value !== "object") return value;
  if ("data" in value && "dtype" in value && "shape" in value) return unpack(value as Packed);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, unpacked(each)]));
}

/** A tensor's numbers from base64. */
export function unpack({ shape, dtype, data }: Packed): Tensor {
  const text = atob(data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i); // loops: a matrix of a long text has millions
  if (dtype === "int32") return { shape, values: new Int32Array(bytes.buffer) };
  if (dtype === "float32") return { shape, values: new Float32Array(bytes.buffer) };
  halves ??= Float32Array.from({ length: 65536 }, (_, bits) => half(bits));
  const halved = new Uint16Array(bytes.buffer);
  const values = new Float32Array(halved.length);
  for (let i = 0; i < halved.length; i++) values[i] = halves[halved[i]];
  return { shape, values };
}

let halves: Float32Array | undefined;

/** A number of 16 bits (IEEE 754): sign, five bits of exponent, ten of fraction. */
export function half(bits: number): number {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export type Asked<T> = { value: T | null; error: string; busy: boolean };

/** The answer to a question that changes: asked again when its values do, after a moment; the last answer stays until the
 * next one is there. `values` gives null where there is nothing to ask. */
export function answer<T>(question: string, values: () => Values | null): Asked<T> {
  const state = $state<Asked<T>>({ value: null, error: "", busy: false });
  $effect(() => {
    const asked = values();
    if (asked === null) return;
    const ending = new AbortController();
    state.busy = true;
    const timer = setTimeout(() => {
      ask<T>(question, asked, ending.signal)
        .then((value) => Object.assign(state, { value, error: "", busy: false }))
        .catch((error: Error) => error.name !== "AbortError" && Object.assign(state, { error: error.message, busy: false }));
    }, 120);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  });
  return state;
}
