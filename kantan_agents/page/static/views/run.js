// One run: timeline, model calls, tool calls.

import { fill, h } from "../lib/dom.js";

export function title() {
  return "Run";
}

export async function show(root) {
  fill(root, h("h1", {}, "Run"));
}
