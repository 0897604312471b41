// The filter above the table of runs: a form whose values are in the address bar.

import { add, h } from "../lib/dom.js";

const CHOSEN = [
  ["agent", "Agent"],
  ["prompt", "Prompt"],
  ["version", "Version"],
  ["tool", "Tool"],
];
const ERRORS = [
  ["", "any end"],
  ["failed", "failed"],
  ["any", "with an error"],
  ["none", "without an error"],
];

/**
 * Make the form.
 *
 * @param {function(URLSearchParams): void} changed Called with the values whenever one changes.
 */
export function filterForm(changed) {
  const fields = {
    words: input("words", { type: "search", placeholder: "words, or \"a phrase\"", autocomplete: "off" }),
    ...Object.fromEntries(CHOSEN.map(([name]) => [name, input(name, { list: `known-${name}`, autocomplete: "off" })])),
    errors: h("select", { id: "filter-errors", name: "errors" }, ERRORS.map(([value, label]) => h("option", { value }, label))),
    denied: input("denied", { type: "checkbox", value: "1" }),
    cut: input("cut", { type: "checkbox", value: "1" }),
    score_below: input("score_below", { type: "number", step: "any", inputmode: "decimal" }),
    from: input("from", { type: "datetime-local" }),
    to: input("to", { type: "datetime-local" }),
  };
  const form = h(
    "form.filter",
    { role: "search", "aria-label": "Filter the runs" },
    labelled("Words", fields.words),
    CHOSEN.map(([name, label]) => labelled(label, fields[name])),
    CHOSEN.map(([name]) => h("datalist", { id: `known-${name}` })),
    labelled("Errors", fields.errors),
    labelled("Score below", fields.score_below),
    labelled("From", fields.from),
    labelled("To", fields.to),
    h("label.check", { for: "filter-denied" }, fields.denied, "denied calls"),
    h("label.check", { for: "filter-cut" }, fields.cut, "answers cut off"),
  );
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => changed(valuesOf(fields)));
  return { form, words: fields.words, set: (query) => setValues(fields, query), offer: (known) => offer(form, known) };
}

function input(name, options) {
  return h("input", { id: `filter-${name}`, name, ...options });
}

function labelled(label, field) {
  return h("div.field", {}, h("label", { for: field.id }, label), field);
}

/** Times are in UTC in the address, so that a link means the same for everybody. */
function valuesOf(fields) {
  const found = new URLSearchParams();
  for (const [name, field] of Object.entries(fields)) {
    const value = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value;
    if (value === "") continue;
    found.set(name, field.type === "datetime-local" ? new Date(value).toISOString() : value);
  }
  return found;
}

function setValues(fields, query) {
  for (const [name, field] of Object.entries(fields)) {
    const value = query.get(name) ?? "";
    if (field.type === "checkbox") field.checked = value === "1";
    else field.value = field.type === "datetime-local" ? local(value) : value;
  }
}

function local(value) {
  const at = new Date(value);
  if (!value || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function offer(form, known) {
  for (const [name] of CHOSEN) {
    const list = form.querySelector(`#known-${name}`);
    list.replaceChildren();
    add(list, (known[name] ?? []).map((value) => h("option", { value })));
  }
}
