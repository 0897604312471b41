// The address bar holds the view and its state: "#/runs?agent=support&words=4711".

/** Return the parts of the path and the values behind it, each with the list of its values. */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** Return an address for a link. Values of undefined, null and "" are left out. */
export function address(parts, query = {}) {
  const given = new URLSearchParams();
  const named = query instanceof URLSearchParams ? query.entries() : Object.entries(query);
  for (const [name, value] of named) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") given.append(name, one);
    }
  }
  return `#/${parts.map(encodeURIComponent).join("/")}${given.size ? `?${given}` : ""}`;
}

/** Go to another address; with `replace`, the back button leads to the one before. */
export function go(to, replace = false) {
  if (!replace) {
    location.hash = to.slice(1);
    return;
  }
  history.replaceState(null, "", to);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // somebody has changed the address by hand
  }
}
