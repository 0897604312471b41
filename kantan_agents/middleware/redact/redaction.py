"""``Redaction``: redacts and restores the data of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import anyio.lowlevel
import attrs

from kantan_agents.core.interception import TextRewriter
from kantan_agents.errors import RedactedContentBlockedError
from kantan_agents.middleware.redact.exceptions import redacted_exception
from kantan_agents.middleware.redact.json_text import (
    JsonRedaction,
    change_json,
    is_valid_json,
    looks_like_json,
    strings_in,
)
from kantan_agents.middleware.redact.placeholders import Placeholders, Replacements
from kantan_agents.middleware.redact.rules import SECRET, Rule
from kantan_agents.middleware.redact.text import TextRedaction
from kantan_agents.middleware.redact.values import change_item, change_sent_item, change_value, is_data_url
from kantan_agents.support.secrets import is_named_secret

_LONG = 16_384
_PIECE = 4_096


@attrs.define(eq=False)
class Redaction:
    """The redaction of one run; without ``replacements``, any finding fails it."""

    rules: Mapping[str, Rule]
    placeholders: Placeholders
    replacements: Replacements | None
    _redacted: dict[str, str] = attrs.field(factory=dict, repr=False)
    _redacted_whole: dict[str, str] = attrs.field(factory=dict, repr=False)

    def masked(self) -> Redaction:
        """Return a redaction that masks without numbers."""
        plain_masks = Replacements("mask", b"", numbered=False, values={})
        return Redaction(self.rules, self.placeholders, plain_masks)

    def input(self, items: Any, where: str) -> Any:
        """Links to images and files stay, because the provider must fetch them."""
        self._mark_all(items)
        return change_sent_item(items, lambda text, field: self._text_or_json(text, field, where))

    async def ahead(self, data: Any, where: str) -> None:
        """Redact long data in advance, in pieces, between which other tasks run."""
        texts: list[str] = []

        def note(text: str, _field: str) -> str:
            if text not in self._redacted_whole and not is_data_url(text):
                texts.append(text)
            return text

        change_sent_item(data, note)
        if sum(map(len, texts)) <= _LONG:
            return
        since = 0
        for text in texts:
            for part in strings_in(text) if looks_like_json(text) else (text,):
                rewriter, done = self._rewriter(where), []
                for place in range(0, len(part) if part not in self._redacted else 0, _PIECE):
                    done.append(rewriter.feed(part[place : place + _PIECE]))
                    since += len(part[place : place + _PIECE])
                    if since >= _PIECE:
                        await anyio.lowlevel.checkpoint()
                        since = 0
                if done:
                    self._keep(part, "".join(done) + rewriter.end())

    def _keep(self, text: str, changed: str) -> str:
        # Unchanged text is cached as the same object, so that an identity check shows no change.
        known = self._redacted[text] = text if changed == text else changed
        return known

    def recorded(self, items: Any) -> Any:
        """Redact input for records, including its links."""
        self._mark_all(items)
        return change_item(items, self._masking()._change)

    def answer(self, item: Any, *, is_json: bool) -> Any:
        """Redact an item of an answer, whose text may be JSON."""

        def change(text: str, field: str) -> str:
            if field == "arguments":
                return self._json(text, "the arguments of a tool")
            return self._json(text, "the answer") if is_json and field == "text" else self._text(text)

        return change_item(item, change)

    def value(self, value: Any, where: str) -> Any:
        """Redact the result of a tool."""
        return change_value(value, lambda text, name: self._text_or_json(text, name, where))

    def data(self, data: Any) -> Any:
        """Redact metadata."""
        return change_value(data, self._masking()._change)

    def exception(self, error: BaseException) -> BaseException:
        """Redact an exception for events, logs, traces and models."""
        change = self._masking()._change
        return redacted_exception(error, lambda value: change_value(value, change))

    def _masking(self) -> Redaction:
        """Return a redaction that never fails the run."""
        return self if self.replacements is not None else self.masked()

    def _change(self, text: str, name: str) -> str:
        return self._text_or_json(text, name, "")

    def rewriter(self, *, is_json: bool, restore: bool) -> TextRewriter:
        """Return a rewriter for a streamed answer; with ``restore``, it restores values."""

        def as_text() -> TextRewriter:
            rewriter: TextRewriter = self._rewriter("the answer")
            return _Restoring(rewriter, self.restored) if restore else rewriter

        if not is_json:
            return as_text()
        change = self._named
        return JsonRedaction(
            (lambda text, name: self.restored(change(text, name))) if restore else change, as_text
        )

    def restored(self, text: str) -> str:
        """Replace placeholders with their values."""
        if self.replacements is None:
            return text
        return self.placeholders.replace(text, self.replacements.value_of)

    def restored_value(self, value: Any) -> Any:
        """Replace placeholders in any data."""
        return change_value(value, lambda text, _: self._restored_whole(text))

    def _restored_whole(self, text: str) -> str:
        restored = self.restored(text)
        if restored != text:
            # A rule may need context that only the input had, such as the name of a password.
            self._redacted_whole[restored] = text
        return restored

    def restored_json(self, text: str) -> str:
        """Replace placeholders in the strings of JSON text."""
        return change_json(text, lambda part, _: self.restored(part))

    def _mark_all(self, items: Any) -> None:
        if self.replacements is not None:
            change_item(items, self._mark_placeholders)

    def _mark_placeholders(self, text: str, _field: str) -> str:
        self.placeholders.replace(text, self._mark_used)
        return text

    def _mark_used(self, place: str) -> str:
        if self.replacements is not None:
            self.replacements.mark_used(place)
        return place

    def _text_or_json(self, text: str, name: str, where: str) -> str:
        if is_data_url(text):
            return text  # an image or a file
        if name and self._is_named_secret(text, name):
            return self._place_for_secret(text, where)
        changed = self._redacted_whole.get(text)
        if changed is None:
            changed = self._valid_json(text, where) if looks_like_json(text) else self._text(text, where)
            self._redacted_whole[text] = changed
        return changed

    def _json(self, text: str, where: str) -> str:
        if is_valid_json(text):
            return self._valid_json(text, where)
        redaction = JsonRedaction(
            lambda part, name: self._named(part, name, where), lambda: self._rewriter(where)
        )
        changed = redaction.feed(text) + redaction.end()
        return text if changed == text else changed

    def _valid_json(self, text: str, where: str) -> str:
        return change_json(text, lambda part, name: self._named(part, name, where))

    def _named(self, text: str, name: str, where: str = "the answer") -> str:
        if name and self._is_named_secret(text, name):
            return self._place_for_secret(text, where)
        return self._text(text, where)

    def _is_named_secret(self, text: str, name: str) -> bool:
        return SECRET in self.rules and is_named_secret(name, text)

    def _place_for_secret(self, text: str, where: str) -> str:
        # A value that contains placeholders is a secret that is already replaced.
        if self.placeholders.replace(text, lambda _: "") != text:
            return self._text(text, where)
        return self._replacing(where)(SECRET, text)

    def _text(self, text: str, where: str = "the answer") -> str:
        known = self._redacted.get(text)
        if known is None:
            rewriter = self._rewriter(where)
            known = self._keep(text, rewriter.feed(text) + rewriter.end())
        return text if known == text else known

    def _rewriter(self, where: str) -> TextRedaction:
        return TextRedaction(self.rules, self._replacing(where), self.placeholders)

    def _replacing(self, where: str) -> Callable[[str, str], str]:
        if self.replacements is not None:
            return self.replacements.place_for

        def block(rule: str, _value: str) -> NoReturn:
            raise RedactedContentBlockedError(rule=rule, where=where)

        return block


class _Restoring:
    """The rewriter never splits a placeholder."""

    def __init__(self, rewriter: TextRewriter, restore: Callable[[str], str]) -> None:
        self._rewriter = rewriter
        self._restore = restore

    def feed(self, piece: str) -> str:
        return self._restore(self._rewriter.feed(piece))

    def end(self) -> str:
        return self._restore(self._rewriter.end())
