// Prompts: their versions with statistics, and what differs between two of them.

import { add, fill, h, inline, visible } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { count, duration, time } from "../lib/format.js";
import { address, go } from "../lib/route.js";
import { table } from "../lib/table.js";
import { changes } from "../lib/changes.js";
import { scoresOverTime } from "../prompts/scores.js";
import { longText } from "../run/text.js";

export function title(parts) {
  return parts.length ? `Prompt ${parts[0]}` : "Prompts";
}

export async function show(root, parts, query, signal) {
  if (parts.length) await showVersions(root, parts[0], query, signal);
  else await showAll(root, signal);
}

async function showAll(root, signal) {
  const { prompts } = await get("prompts", {}, signal);
  const empty = h("p.empty", {}, "No run of this database names a prompt. Give an agent a ", h("code", {}, "Prompt(name, version, text)"), ".");
  fill(root, h("h1", {}, "Prompts"), prompts.length ? allPrompts(prompts) : empty);
}

function allPrompts(prompts) {
  const rows = prompts.map((prompt) => [
    h("a", { href: address(["prompts", prompt.name]) }, inline(prompt.name)),
    count(prompt.versions),
    count(prompt.runs),
    count(prompt.failures),
    count(prompt.unfinished),
    time(prompt.last_run),
  ]);
  return table("Prompts", ["Name", "Versions", "Runs", "Failed", "Unfinished", "Last run"], rows);
}

async function showVersions(root, name, query, signal) {
  const { versions } = await get("prompts/versions", { name }, signal);
  const chosen = chosenIn(versions, query);
  const part = h("section");
  const scores = h("section", { "aria-label": "Scores over time" });
  fill(
    root,
    h("h1", {}, inline(name)),
    h("p", {}, h("a", { href: address(["prompts"]) }, "All prompts")),
    statistics(name, versions),
    scores,
    versions.length > 1 ? choice(name, versions, chosen, part, signal) : null,
    part,
  );
  get("prompts/scores", { name }, signal).then((data) => fill(scores, h("h2", {}, "Scores over time"), scoresOverTime(data, label)), () => {});
  if (versions.length > 1) await compare(part, name, versions, chosen, signal);
  else fill(part, h("h2", {}, "Text"), textOf(versions[0]));
}

function statistics(name, versions) {
  const rows = versions.map((one) => [
    h("a", { href: address(["runs"], { prompt: name, version: one.version }) }, inline(label(one.version))),
    count(one.runs),
    count(one.failures),
    count(one.unfinished),
    one.mean_score === null ? "" : `${one.mean_score.toFixed(2)} (${count(one.scores)})`,
    one.tokens === null ? "" : count(Math.round(one.tokens)),
    duration(one.latency_p50),
    duration(one.latency_p95),
    time(one.last_run),
  ]);
  const heads = ["Version", "Runs", "Failed", "Unfinished", "Score (verdicts)", "Tokens a run", "Median", "95 %", "Last run"];
  return table("Versions", heads, rows);
}

function label(version) {
  return version ?? "without a version";
}

/** The two versions to compare: those of the address, or the last two. */
function chosenIn(versions, query) {
  const known = versions.map((one) => one.version ?? "");
  const pick = (name, place) => (query.has(name) && known.includes(query.get(name)) ? query.get(name) : known.at(place));
  return { old: pick("old", -2), new: pick("new", -1) };
}

function choice(name, versions, chosen, part, signal) {
  const select = (field, text) => {
    const options = versions.map((one) => h("option", { value: one.version ?? "", selected: (one.version ?? "") === chosen[field] }, visible(label(one.version))));
    const changed = (event) => {
      chosen[field] = event.target.value;
      go(address(["prompts", name], chosen), true);
      compare(part, name, versions, chosen, signal);
    };
    return h("label", {}, text, " ", h("select", { onchange: changed }, options));
  };
  return h("p.choice", {}, select("old", "From"), select("new", "To"));
}

async function compare(part, name, versions, chosen, signal) {
  const asked = address([], chosen);
  try {
    const { lines } = await get("prompts/diff", { name, ...chosen }, signal);
    if (asked !== address([], chosen)) return; // another version was chosen meanwhile
    fill(part, h("h2", {}, "What has changed"), lines.length ? changes(lines) : h("p.empty", {}, "The texts are the same."));
  } catch (error) {
    if (signal.aborted) return;
    fill(part, h("p.note", {}, inline(error.message)));
  }
  const newest = versions.find((one) => (one.version ?? "") === chosen.new);
  add(part, [h("h2", {}, "Text of ", inline(label(newest.version))), textOf(newest)]);
}

function textOf(version) {
  return version.text ? longText(version.text) : h("p.note", {}, "Its text is not recorded.");
}
