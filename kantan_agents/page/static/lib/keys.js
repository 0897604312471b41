// Keys of the page: they do nothing while a text is being typed, and nothing together with Ctrl, Alt or Meta.

const FIELDS = new Set(["INPUT", "TEXTAREA", "SELECT"]);

/**
 * Listen for keys until the signal aborts.
 *
 * @param {Object<string, function(KeyboardEvent)>} actions What each key does, by its `event.key`.
 * @param {AbortSignal} signal Ends it.
 */
export function listen(actions, signal) {
  document.addEventListener(
    "keydown",
    (event) => {
      const typing = FIELDS.has(event.target.tagName) || event.target.isContentEditable;
      if (event.ctrlKey || event.altKey || event.metaKey || (typing && event.key !== "Escape")) return;
      const action = actions[event.key];
      if (action) {
        event.preventDefault();
        action(event);
      }
    },
    { signal },
  );
}
