// The script of a report file: shows the runs that the file contains.

import { fill, h, inline } from "../lib/dom.js";
import { time } from "../lib/format.js";
import { listen } from "../lib/keys.js";
import { RunBoard } from "../run/board.js";

let shownRun = new AbortController();

function showRun(runs, place) {
  shownRun.abort();
  shownRun = new AbortController();
  const board = new RunBoard(document.getElementById("view"), runs[place], { whole: () => null });
  const escape = (event) => event.target.tagName === "INPUT" && event.target.blur();
  listen({ ...board.keys(), Escape: escape }, shownRun.signal);
  document.querySelectorAll("#runs button").forEach((button, number) => {
    if (number === place) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  });
}

function startReport() {
  const runs = JSON.parse(document.getElementById("data").textContent);
  fill(
    document.getElementById("runs"),
    runs.map((run, place) =>
      h("button", { type: "button", onclick: () => showRun(runs, place) }, inline(run.agent ?? "run"), " ", time(run.started_at)),
    ),
  );
  if (runs.length) showRun(runs, 0);
}

startReport();
