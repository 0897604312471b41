// Shows the view that the address bar names.

import { add, fill, h, inline, visible } from "./lib/dom.js";
import { address, current } from "./lib/route.js";
import * as comparisons from "./views/comparisons.js";
import * as diff from "./views/diff.js";
import * as label from "./views/label.js";
import * as prompts from "./views/prompts.js";
import * as run from "./views/run.js";
import * as runs from "./views/runs.js";

// Each view has `title(parts)` and `show(root, parts, query, signal)`, which may be async. `signal` aborts when
// another view is shown: listeners, requests and timers must end with it. With `update(query)`, a view takes
// a change of its values itself; without it, it is shown anew.
const VIEWS = { runs, run, diff, prompts, comparisons, label };
const LINKS = [
  ["runs", "Runs"],
  ["prompts", "Prompts"],
  ["comparisons", "Comparisons"],
  ["label", "Label"],
];

let shown = new AbortController();

let last = { name: null, rest: [] };

async function show() {
  const { parts, query } = current();
  const [name = "runs", ...rest] = parts;
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : null;
  const isSame = name === last.name && rest.join("/") === last.rest.join("/");
  if (isSame && view?.update && !shown.signal.aborted) {
    view.update(query);
    return;
  }
  last = { name, rest };
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const root = document.getElementById("view");
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!view) {
    fill(root, h("h1", {}, "Not found"), h("p.problem", {}, "There is no such view. ", h("a", { href: address(["runs"]) }, "To the runs")));
    return;
  }
  document.title = `${visible(view.title(rest))} - kantan_agents`;
  fill(root, h("p.waiting", {}, "Loading…"));
  try {
    await view.show(root, rest, query, signal);
  } catch (error) {
    if (!signal.aborted) problem(root, error);
  }
}

function problem(root, error) {
  const code = error.code ? h("strong", {}, `${error.code} `) : null;
  fill(root, h("h1", {}, "This cannot be shown"), h("p.problem", { role: "alert" }, code, inline(error.message)));
}

add(
  document.getElementById("views"),
  LINKS.map(([name, label]) => h("a", { href: address([name]), "data-view": name }, label)),
);
window.addEventListener("hashchange", show);
show();
