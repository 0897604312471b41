// Long texts from a run, with a note if the page has only the beginning.

import { block, h, inline, visible } from "../lib/dom.js";
import { count } from "../lib/format.js";

/** Return a cut text as a block; `whole` is the address of the whole text, if there is one. */
export function longText(cut, whole = null) {
  if (!cut) return null;
  const more = cut.length - [...cut.text].length;
  if (more <= 0) return block(cut.text);
  const link = whole ? [" ", h("a", { href: whole, download: "" }, "The whole text")] : null;
  return h("div", {}, block(cut.text), h("p.note", {}, `${count(more)} more characters are in the database.`, link));
}

/** Return a section with a heading below that of a part; nothing if it has no content. */
export function section(title, ...content) {
  return headed("h3", title, content);
}

/** Return a part of the page with a heading below that of the page; nothing if it has no content. */
export function part(title, ...content) {
  return headed("h2", title, content);
}

function headed(tag, title, content) {
  const shown = content.flat().filter((one) => one !== null && one !== undefined);
  return shown.length ? h("section", {}, h(tag, {}, visible(title)), shown) : null;
}

/** Return a section that is closed at first. */
export function folded(title, content, isOpen = false) {
  return content ? h("details", { open: isOpen }, h("summary", {}, title), content) : null;
}

/** Return facts as a list of names and values; those without a value are left out. */
export function facts(entries) {
  const shown = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (!shown.length) return null;
  return h(
    "dl.facts",
    {},
    shown.map(([name, value]) => h("div", {}, h("dt", {}, inline(name)), h("dd", {}, value instanceof Node ? value : inline(value)))),
  );
}
