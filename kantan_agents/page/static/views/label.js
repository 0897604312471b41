// The labelling queue.

import { fill, h } from "../lib/dom.js";

export function title() {
  return "Label";
}

export async function show(root) {
  fill(root, h("h1", {}, "Label"));
}
