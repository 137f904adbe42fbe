/** Where the reader is, kept in the address: `#/rotary?base=10000&lang=es`. A link is a picture of the page. */
import { LANGUAGES, speak, speech, type Language } from "./words.svelte";

export type Value = string | number | boolean;
export type State = Record<string, Value>;

export const place = $state<{ panel: string; visit: number }>({ panel: "", visit: 0 });
let written: string | null = null;

/** Read the address again, and whenever it changes by other hands than ours. */
export function follow(): void {
  const read = () => {
    if (location.hash === written) return;
    written = location.hash;
    const { panel, values } = parse(location.hash);
    const language = values.get("lang") as Language | null;
    if (language && LANGUAGES.includes(language)) speak(language);
    place.panel = panel;
    place.visit += 1;
  };
  read();
  addEventListener("hashchange", read);
}

/** The address of a panel in a state. */
export function address(panel: string, values: State = {}): string {
  const query = new URLSearchParams(Object.entries(values).map(([key, value]) => [key, String(value)]));
  return `#/${panel}${query.size ? `?${query}` : ""}`;
}

/** A whole link to what is seen now, its language too. */
export function link(): string {
  const { panel, values } = parse(location.hash);
  values.set("lang", speech.language);
  return `${location.href.split("#")[0]}#/${panel || place.panel}?${values}`;
}

/** A panel's state: what the address says, else `first`; what differs from `first` is written to the address. */
export function remembered<S extends State>(panel: string, first: S): S {
  const { values } = parse(location.hash);
  const state = $state({ ...first });
  for (const key of Object.keys(first) as (keyof S & string)[]) {
    const given = values.get(key);
    const value = given === null ? null : as(given, first[key]);
    if (value !== null) state[key] = value as S[keyof S & string];
  }
  $effect(() => {
    const changed = Object.fromEntries(Object.entries(state).filter(([key, value]) => value !== first[key]));
    const hash = address(panel, changed);
    if (hash === location.hash) return;
    written = hash;
    history.replaceState(null, "", hash);
  });
  return state;
}

function as(given: string, like: Value): Value | null {
  if (typeof like === "number") return given !== "" && Number.isFinite(Number(given)) ? Number(given) : null;
  if (typeof like === "boolean") return given === "true" ? true : given === "false" ? false : null;
  return given;
}

function parse(hash: string): { panel: string; values: URLSearchParams } {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { panel: path, values: new URLSearchParams(query) };
}
