// A table of figures.

import { h, inline } from "./dom.js";

/** Return a table whose first cells are headings of their rows. */
export function table(caption, heads, rows) {
  // Figures are strings; what is an element, such as a text, begins at the left.
  const kind = (content) => (content instanceof Node ? "" : "number");
  const cell = (content, place) => (place ? h("td", { class: kind(content) }, content) : h("th", { scope: "row" }, content));
  return h(
    "div.wide",
    { tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption.quiet", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head, place) => h("th", { scope: "col", class: place && rows.length ? kind(rows[0][place]) : "" }, inline(head))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))),
    ),
  );
}
