/** Texts in three languages. A panel keeps its own in `texts.json` (key -> language -> text), shaped as the package's
 * glossary, whose terms are read from there. Texts hold `{name}` fields; `{n:row|rows}` is the noun for n of them. */
import { plots, terms } from "../../../src/gnomon/glossary.json";

export const LANGUAGES = ["en", "es", "pt"] as const;
export type Language = (typeof LANGUAGES)[number];
export type Texts = Record<string, Record<Language, string>>;
export type Fields = Record<string, string | number>;

const NARROW = "\u202f";
const SAVED = "gnomon-language";

function first(): Language {
  const asked = [saved(SAVED), ...(globalThis.navigator?.languages ?? [])];
  for (const each of asked) {
    const found = LANGUAGES.find((language) => each?.toLowerCase().startsWith(language));
    if (found) return found;
  }
  return "en";
}

/** What the browser keeps under a name; a page from file:// may not be allowed to ask. */
export function saved(name: string): string | null {
  try {
    return globalThis.localStorage?.getItem(name) ?? null;
  } catch {
    return null;
  }
}

/** Keep something in the browser, where that is allowed. */
export function save(name: string, value: string): void {
  try {
    globalThis.localStorage?.setItem(name, value);
  } catch {
    /* kept for this page alone */
  }
}

export const speech = $state<{ language: Language }>({ language: first() });

/** Speak another language from now on. */
export function speak(language: Language): void {
  speech.language = language;
  save(SAVED, language);
}

/** A function from the keys of some texts to the text in the language that is spoken. */
export function texts<T extends Texts>(of: T): (key: keyof T & string, fields?: Fields) => string {
  return (key, fields = {}) => filled(of[key][speech.language], fields);
}

/** The glossary's word for a thing, and what its pictures call it. */
export const term = texts(terms);
export const label = texts(plots as Texts);

/** A text with its fields filled in. */
export function filled(text: string, fields: Fields, language: Language = speech.language): string {
  return text.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (_, name: string, one?: string, many?: string) => {
    const value = fields[name];
    if (one !== undefined) return value === 1 || value === "1" ? one : (many ?? "");
    return typeof value === "number" ? number(value, {}, language) : String(value);
  });
}

export type Digits = { digits?: number; fixed?: number };

/** A number as its language writes it, as the package does: groups of three, a decimal comma in Spanish and
 * Portuguese. digits: significant ones; fixed: decimals. */
export function number(x: number, { digits, fixed }: Digits = {}, language: Language = speech.language): string {
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "–" : x < 0 ? "−∞" : "∞";
  let text = fixed !== undefined ? x.toFixed(fixed) : digits !== undefined ? significant(x, digits) : plain(x);
  if (Number(text) === 0 && text.startsWith("-")) text = text.slice(1);
  const [mantissa, exponent] = text.split("e");
  const [whole, decimals] = mantissa.replace("-", "").split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, NARROW);
  const point = language === "en" ? "." : ",";
  const sign = mantissa.startsWith("-") ? "−" : "";
  const power = exponent === undefined ? "" : `e${exponent}`;
  return sign + grouped + (decimals ? point + decimals : "") + power;
}

function plain(x: number): string {
  return Number.isInteger(x) ? x.toFixed(0) : String(Number(x.toPrecision(6)));
}

function significant(x: number, digits: number): string {
  if (x === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(x)));
  if (size < -4 || size > 14) return x.toExponential(digits - 1);
  return Number(x.toPrecision(digits)).toFixed(Math.max(0, digits - 1 - size)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
}

/** A share as a percentage. */
export function percent(x: number, fixed = 1): string {
  return `${number(100 * x, { fixed })}${NARROW}%`;
}
