// The lines of a diff.

import { h, inline } from "./dom.js";

const SIGNS = { added: "+", removed: "−", kept: " ", place: "" };

/** Return the lines of a diff, each with what became of it: as a colour, a sign, and a word for screen readers. */
export function changes(lines) {
  return h(
    "div.diff",
    { role: "region", tabindex: "0", "aria-label": "Changes" },
    lines.map((line) =>
      line.kind === "place"
        ? h("div.place", {}, "…")
        : h(
            "div",
            { class: line.kind },
            h("span.sign", { "aria-hidden": "true" }, SIGNS[line.kind]),
            line.kind === "kept" ? null : h("span.quiet", {}, `${line.kind}: `),
            inline(line.text),
          ),
    ),
  );
}
