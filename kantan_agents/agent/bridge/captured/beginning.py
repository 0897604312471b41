"""The start of a run, before middleware, callbacks and filters change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kantan_agents.agent.bridge.captured.definitions import encode
from kantan_agents.core.interception import is_redacted, redacted_data, redacted_input
from kantan_agents.core.pipeline import Run
from kantan_agents.core.templating import values_read
from kantan_agents.models.protocol.translate.openai_responses.provider_data import without_media
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.capture.shared import packed_item


class Beginning:
    """The start of a run; ``outer`` is the containing run's."""

    def __init__(self, run: Run, outer: Beginning | None) -> None:
        self.values: dict[str, bytes] = {}
        self._run = run
        self._outer = outer
        self._given: str | list[bytes] | None = None
        # Shared with the callback: a reference to this object would be a cycle through the run.
        self._earlier: list[list[bytes] | Exception] = []
        # Values that change in place are only known if the agent's own template reads them.
        self._context = {**run.context} if isinstance(run.context, dict) else {}
        callback = run.run_config.session_input_callback
        if callback is not None and run.options.get("session") is not None:
            run.run_config.session_input_callback = _watched(callback, self._earlier)

    def with_input(self, given: Any) -> None:
        """Capture the input before middleware changes it."""
        self._given = packed(given)

    def read_by(self, template: str) -> None:
        """Capture the values a template reads. A delegated run starts with its parent's."""
        if self._outer is not None and self._run.delegation is not None:
            self._outer.read_by(template)
        for path, value in values_read(template, self._context).items():
            if path not in self.values:
                self.values[path] = encode(value)

    def offered(self, items: Sequence[Any]) -> None:
        """Capture the session's items from the first turn's unfiltered input."""
        run = self._run
        is_changed = run.model_calls or run.run_config.call_model_input_filter is not None
        if is_changed and not self._earlier and isinstance(run.input, (str, list)):
            self._earlier.append(_packed_session(items[: _before(items, run.input)]))

    def given(self) -> Any:
        """Return the input, packed and redacted, if known."""
        given, run = self._given, self._run
        if given is None or not is_redacted(run):
            return given
        # Only now: redaction needs the placeholders that the user typed.
        return packed(redacted_input(run, given if isinstance(given, str) else [*map(decode, given)]))

    def earlier(self, calls: Sequence[Mapping[str, Any]], sent: Any) -> list[bytes] | None:
        """Return the redacted session items, unless the first request starts with them; may raise."""
        if not self._earlier:
            return None
        earlier = self._earlier[0]
        if isinstance(earlier, Exception):
            raise earlier
        if is_redacted(self._run):
            earlier = packed(redacted_data(self._run, [*map(decode, earlier)]))
        first = calls[0].get("items", []) if calls else []
        return None if earlier == [*map(packed_item, first[: _before(first, sent)])] else earlier


def _watched(
    callback: Callable[[Any, Any], Any], found: list[list[bytes] | Exception]
) -> Callable[[Any, Any], Any]:
    def merge(earlier: Any, new: Any) -> Any:
        found.append(_packed_session(earlier))
        return callback(earlier, new)

    return merge


def _packed_session(items: Sequence[Any]) -> list[bytes] | Exception:
    try:
        return [encode(without_media(item)) for item in items]
    except Exception as error:  # noqa: BLE001 - recording must not fail a run
        return error


def packed(items: Any) -> Any:
    """Return an input with its items as JSON."""
    return [encode(item) for item in items] if isinstance(items, list) else items


def _before(items: Sequence[Any], own: Any) -> int:
    return max(0, len(items) - (len(own) if isinstance(own, list) else 1))
