// The table of runs.

import { fill, h, inline } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { count, duration, time } from "../lib/format.js";
import { address } from "../lib/route.js";

export function title() {
  return "Runs";
}

export async function show(root, parts, query, signal) {
  const { runs } = await get("runs", {}, signal);
  fill(
    root,
    h("h1", {}, "Runs"),
    h("table", {}, runs.map((run) => h("tr", {}, h("td", {}, h("a", { href: address(["run", run.id]) }, time(run.started_at))), h("td", {}, inline(run.agent)), h("td", {}, duration(run.seconds)), h("td", {}, count(run.tokens))))),
  );
}
