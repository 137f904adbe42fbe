/** Every panel, in the order of the menu: its name in the address, its group, its title, its component. */
import type { Component } from "svelte";
import { texts, type Texts } from "../lib/words.svelte";
import Audit from "./audit/Audit.svelte";
import audit from "./audit/texts.json";
import Biases from "./biases/Biases.svelte";
import biases from "./biases/texts.json";
import Flow from "./flow/Flow.svelte";
import flow from "./flow/texts.json";
import Generate from "./generate/Generate.svelte";
import generate from "./generate/texts.json";
import Lab from "./lab/Lab.svelte";
import lab from "./lab/texts.json";
import Learned from "./learned/Learned.svelte";
import learned from "./learned/texts.json";
import Lessons from "./lessons/Lessons.svelte";
import lessons from "./lessons/texts.json";
import Masks from "./masks/Masks.svelte";
import masks from "./masks/texts.json";
import Order from "./order/Order.svelte";
import order from "./order/texts.json";
import Rotary from "./rotary/Rotary.svelte";
import rotary from "./rotary/texts.json";
import Sinusoid from "./sinusoid/Sinusoid.svelte";
import sinusoid from "./sinusoid/texts.json";
import Space from "./space/Space.svelte";
import space from "./space/texts.json";

export type Group = "group_lessons" | "group_encodings" | "group_attention" | "group_model" | "group_evidence";
export type Entry = { name: string; group: Group; title: () => string; component: Component };

function entry(name: string, group: Group, component: Component, catalogue: Texts): Entry {
  const t = texts(catalogue);
  return { name, group, component, title: () => t("title") };
}

export const PANELS: Entry[] = [
  entry("sinusoid", "group_encodings", Sinusoid, sinusoid),
  entry("rotary", "group_encodings", Rotary, rotary),
  entry("biases", "group_encodings", Biases, biases),
  entry("learned", "group_encodings", Learned, learned),
  entry("masks", "group_attention", Masks, masks),
  entry("flow", "group_model", Flow, flow),
  entry("order", "group_model", Order, order),
  entry("generate", "group_model", Generate, generate),
  entry("space", "group_model", Space, space),
  entry("lab", "group_evidence", Lab, lab),
  entry("audit", "group_evidence", Audit, audit),
  entry("lessons", "group_lessons", Lessons, lessons),
];
