import { mount } from "svelte";
import "./app.css";
import App from "./App.svelte";
import { follow } from "./lib/address.svelte";

follow(); // before anything is drawn: the address says what

mount(App, { target: document.getElementById("app")! });
