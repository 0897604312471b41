// Asks the server that the page comes from, and nobody else.

export class ApiError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Return the JSON data at a path below api/; `query` holds values, or lists of them, by name. */
export async function get(path, query = {}, signal = undefined) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") given.append(name, one);
    }
  }
  const shown = given.size ? `?${given}` : "";
  return read(await fetch(`api/${path}${shown}`, { signal }));
}

/** Send JSON data to a path below api/, with the token that only this page has. */
export async function post(path, data, method = "POST") {
  const token = document.querySelector('meta[name="kantan-token"]').content;
  const headers = { "Content-Type": "application/json", "X-Kantan-Token": token };
  return read(await fetch(`api/${path}`, { method, headers, body: JSON.stringify(data) }));
}

async function read(response) {
  const data = response.headers.get("Content-Type")?.startsWith("application/json") ? await response.json() : null;
  if (response.ok) return data;
  const error = data?.error ?? { code: String(response.status), message: await text(response, data) };
  throw new ApiError(error.code, error.message);
}

async function text(response, data) {
  return data === null ? response.text() : response.statusText;
}
