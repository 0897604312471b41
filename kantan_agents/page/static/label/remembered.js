// What the browser remembers of a person. Without storage, as in some private windows, it lasts as long as the page.

const NAME = "kantan-agents-label-name";
const AT_ONCE = "kantan-agents-label-at-once";
const kept = new Map();

export function rememberedName() {
  return read(NAME) ?? "";
}

export function rememberName(name) {
  write(NAME, name);
}

/** Return whether the next case follows an answer at once. */
export function goesOnAtOnce() {
  return read(AT_ONCE) === "yes";
}

export function goOnAtOnce(wanted) {
  write(AT_ONCE, wanted ? "yes" : "no");
}

function read(key) {
  try {
    return localStorage.getItem(key) ?? kept.get(key);
  } catch {
    return kept.get(key);
  }
}

function write(key, value) {
  kept.set(key, value);
  try {
    localStorage.setItem(key, value);
  } catch {
    // It is kept for this page.
  }
}
