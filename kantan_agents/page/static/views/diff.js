// Two runs side by side.

import { fill, h } from "../lib/dom.js";

export function title() {
  return "Two runs";
}

export async function show(root) {
  fill(root, h("h1", {}, "Two runs"));
}
