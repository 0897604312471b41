// Chooses what to label, by whom and on which scale.

import { fill, h, inline, visible } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { count } from "../lib/format.js";
import { address, go } from "../lib/route.js";
import { rememberName, rememberedName } from "./remembered.js";

const SCALES = { yesno: "yes or no", "0-1": "0 to 1, in tenths", "1-5": "grades from 1 to 5", "1-10": "grades from 1 to 10" };

/** Show the form; `parts` and `query` are of an address that lacked the name of the person. */
export async function choose(root, parts, query, signal) {
  const data = await get("labels", { by: rememberedName() }, signal);
  const heading = h("h1", {}, "Label");
  if (!data.may_label) {
    fill(root, heading, h("p.empty", {}, "Labels cannot be given on this page."));
  } else if (data.evaluations.length === 0) {
    const command = h("code", {}, "kantan-agents eval run");
    fill(root, heading, h("p.empty", {}, "There is no evaluation in this database. ", command, " makes one."));
  } else {
    fill(root, heading, intro(), form(data, parts, query), table(data));
  }
}

function intro() {
  const text = "Judge results of an evaluation yourself, one after the other. The judge's score is hidden until you have answered.";
  return h("p.note", {}, text);
}

function form(data, parts, query) {
  const usable = data.evaluations.filter((one) => !one.problem);
  const name = field("Your name", h("input", { name: "by", required: true, autocomplete: "name", value: rememberedName() }));
  const evaluation = field("Evaluation", h("select", { name: "evaluation" }, usable.map((one) => option(one.name, one.name === parts[0]))));
  const metric = field("Metric", h("input", { name: "metric", required: true, list: "label-metrics", autocomplete: "off" }));
  const metrics = h("datalist", { id: "label-metrics" });
  const scale = field("Scale", h("select", { name: "scale" }, scales(data, query)));
  const sample = field("How many runs", h("input", { name: "sample", type: "number", min: "1", step: "1", placeholder: "all", value: query.get("sample") ?? "" }));
  const seed = field("Seed", h("input", { name: "seed", type: "number", min: "0", step: "1", value: query.get("seed") ?? "0" }));
  const made = h("form.label-form", { onsubmit: start }, name, evaluation, metric, metrics, scale, sample, seed, h("button", { type: "submit" }, "Start"));
  let isScaleChosen = query.has("scale");
  const chosen = () => usable.find((one) => one.name === made.elements.evaluation.value);
  const suggest = () => {
    const known = chosen()?.metrics ?? [];
    fill(metrics, known.map((one) => h("option", { value: one.name })));
    made.elements.metric.value = known[0]?.name ?? "";
    suggestScale();
  };
  const suggestScale = () => {
    const found = chosen()?.metrics.find((one) => one.name === made.elements.metric.value);
    if (found && !isScaleChosen) made.elements.scale.value = found.scale;
  };
  made.elements.evaluation.addEventListener("change", suggest);
  made.elements.metric.addEventListener("change", suggestScale);
  made.elements.scale.addEventListener("change", () => {
    isScaleChosen = true;
  });
  suggest();
  if (parts[1]) made.elements.metric.value = parts[1];
  if (query.has("scale")) made.elements.scale.value = query.get("scale");
  return made;
}

function start(event) {
  event.preventDefault();
  const { by, evaluation, metric, scale, sample, seed } = event.target.elements;
  if (!by.value.trim() || !metric.value.trim()) return;
  rememberName(by.value.trim());
  const to = address(["label", evaluation.value, metric.value.trim()], { scale: scale.value, sample: sample.value, seed: seed.value });
  // The address may be the one that lacked a name: then nothing but the name has changed.
  if (to === location.hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else go(to);
}

function scales(data, query) {
  const given = query.get("scale");
  const offered = given && !data.scales.includes(given) ? [...data.scales, given] : data.scales;
  return offered.map((one) => option(one, one === given, SCALES[one]));
}

function option(value, selected, text = value) {
  return h("option", { value, selected }, visible(text));
}

function field(label, control) {
  return h("label", {}, h("span", {}, label), control);
}

function table(data) {
  const rows = data.evaluations.flatMap((one) => (one.problem ? [broken(one)] : one.metrics.map((metric) => row(one, metric))));
  const by = rememberedName();
  const waiting = by ? ["Wait for ", inline(by)] : "Results";
  const head = h("thead", {}, h("tr", {}, column("Evaluation"), column("Metric"), column("Scored by"), h("th.number", { scope: "col" }, waiting)));
  const more = data.left_out ? h("p.note", {}, `${count(data.left_out)} older evaluations are not listed.`) : null;
  return h("section", {}, h("h2", {}, "Evaluations"), h("div.wide", { tabindex: "0", role: "region", "aria-label": "Evaluations" }, h("table", {}, head, h("tbody", {}, rows))), more);
}

function column(name) {
  return h("th", { scope: "col" }, name);
}

function row(evaluation, metric) {
  const people = metric.people ? `${count(metric.people)} ${metric.people === 1 ? "person" : "people"}` : null;
  const by = [metric.judged ? "an evaluator" : null, people].filter(Boolean).join(", ");
  const to = address(["label", evaluation.name, metric.name], { scale: metric.scale });
  const waiting = metric.waiting ?? evaluation.finished;
  return h("tr", {}, h("td", {}, inline(evaluation.name)), h("td", {}, h("a", { href: to }, inline(metric.name))), h("td", {}, by), h("td.number", {}, count(waiting)));
}

function broken(evaluation) {
  return h("tr", {}, h("td", {}, inline(evaluation.name)), h("td", { colspan: "3" }, h("span.failed", {}, "damaged: "), inline(evaluation.problem)));
}
