/** Light or dark, by the system until the reader says otherwise; and whether things may move. */
import { save, saved } from "./words.svelte";

const SAVED = "gnomon-theme";
const asked = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
const still = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)");

export const theme = $state({ dark: (saved(SAVED) ?? (asked?.matches ? "dark" : "light")) === "dark", still: still?.matches ?? false });

asked?.addEventListener("change", () => {
  if (saved(SAVED) === null) theme.dark = asked.matches;
});
still?.addEventListener("change", () => (theme.still = still.matches));

/** The other one, and remember it. */
export function turn(): void {
  theme.dark = !theme.dark;
  save(SAVED, theme.dark ? "dark" : "light");
}
