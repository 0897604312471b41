// Versions of prompts, their texts and statistics.

import { fill, h } from "../lib/dom.js";

export function title() {
  return "Prompts";
}

export async function show(root) {
  fill(root, h("h1", {}, "Prompts"));
}
