/** The lesson that is being taken, and those that were: kept in the browser alone. */
import { save, saved } from "../../lib/words.svelte";
import { LESSONS } from "./lessons";

const DONE = "gnomon-lessons";
export const tour = $state<{ name: string; step: number; done: string[] }>({ name: "", step: 0, done: (saved(DONE) ?? "").split(" ").filter(Boolean) });

/** Go to a step of a lesson. */
export function go(name: string, step: number): void {
  const { panel, state } = LESSONS.find((lesson) => lesson.name === name)!.steps[step];
  Object.assign(tour, { name, step });
  location.hash = `#/${panel}${state ? `?${state}` : ""}`;
}

/** End the lesson; done or not. */
export function end(done: boolean): void {
  if (done && !tour.done.includes(tour.name)) {
    tour.done.push(tour.name);
    save(DONE, tour.done.join(" "));
  }
  if (!done) tour.name = "";
}
