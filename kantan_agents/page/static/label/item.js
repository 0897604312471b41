// One case as a person is asked about it.

import { block, h, inline } from "../lib/dom.js";
import { count } from "../lib/format.js";

/** Return the case: input, context, tool calls, output and the expected output. */
export function itemParts(item) {
  if (item.problem) return [h("p.problem", {}, "This result cannot be read; skip it. ", inline(item.problem))];
  return [
    section("Input", named(item.input)),
    item.context.count ? section("Context", named(item.context)) : null,
    item.tools.count ? section("Tool calls", [left(item.tools, "calls"), item.tools.shown.map(call)]) : null,
    section("Output", item.withheld ? h("p.empty", {}, "Its content is not stored.") : text(item.output), "label-output"),
    item.expected ? section("Expected", text(item.expected)) : null,
  ];
}

function section(title, content, kind = "") {
  return h(`section.card${kind && `.${kind}`}`, {}, h("h2", {}, title), content);
}

function named(parts) {
  return [left(parts, "parts"), parts.shown.map((one) => [one.name ? h("h3", {}, inline(one.name)) : null, text(one)])];
}

function left(parts, what) {
  const missing = parts.count - parts.shown.length;
  return missing ? h("p.note", {}, `The first ${count(missing)} ${what} are not shown.`) : null;
}

function text(part) {
  const isCut = part.length > [...part.text].length;
  const note = isCut ? h("p.note", {}, `The beginning of ${count(part.length)} characters.`) : null;
  return [block(part.text), note];
}

function call(one) {
  const outcome = one.denied ? h("p.failed", {}, "denied") : one.output ? text(one.output) : h("p.failed", {}, "no result");
  return h("div.label-call", {}, h("h3", {}, inline(one.name)), text(one.arguments), outcome);
}
