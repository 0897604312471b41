// Evaluations and experiments, and their comparisons.

import { fill, h } from "../lib/dom.js";

export function title() {
  return "Comparisons";
}

export async function show(root) {
  fill(root, h("h1", {}, "Comparisons"));
}
