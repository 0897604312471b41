"""``Redaction``: redact and restore the inputs, answers, tool results and errors of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import attrs

from kantan_agents.errors import RedactedContentBlockedError
from kantan_agents.interception import TextRewriter
from kantan_agents.middleware.redact.json_text import JsonRedaction, change_json, looks_like_json
from kantan_agents.middleware.redact.places import Placeholders, Replacements
from kantan_agents.middleware.redact.rules import Rule
from kantan_agents.middleware.redact.text import TextRedaction
from kantan_agents.middleware.redact.values import change_item, change_value


@attrs.define(eq=False)
class Redaction:
    """The redaction of one run.

    Attributes:
        rules: The rules, by name.
        placeholders: Finds placeholders in a text.
        replacements: The placeholders of the run and their values; None if any finding ends the run.
    """

    rules: Mapping[str, Rule]
    placeholders: Placeholders
    replacements: Replacements | None
    _redacted: dict[str, str] = attrs.field(factory=dict, repr=False)
    _redacted_whole: dict[str, str] = attrs.field(factory=dict, repr=False)

    def masked(self) -> Redaction:
        """Return a redaction with the same rules that masks without numbers."""
        plain_masks = Replacements("mask", b"", numbered=False, values={})
        return Redaction(self.rules, self.placeholders, plain_masks)

    def input(self, items: Any, where: str) -> Any:
        """Return the redacted input of a run or a model call: a str or API items."""
        if self.replacements is not None:
            change_item(items, self._mark_placeholders)
        return change_item(items, lambda text, _: self._text_or_json(text, where))

    def answer(self, item: Any, *, is_json: bool) -> Any:
        """Return a redacted item of a model's answer.

        Args:
            item: The item.
            is_json: Whether the text of the answer is JSON.
        """

        def change(text: str, field: str) -> str:
            if field == "arguments":
                return self._json(text, "the arguments of a tool")
            return self._json(text, "the answer") if is_json and field == "text" else self._text(text)

        return change_item(item, change)

    def value(self, value: Any, where: str) -> Any:
        """Return the redacted result of a tool."""
        return change_value(value, lambda text: self._text_or_json(text, where))

    def error(self, error: Exception) -> None:
        """Redact the arguments of an exception in place: events, traces and models receive its message."""
        masking = self if self.replacements is not None else self.masked()
        error.args = tuple(masking.value(arg, "") for arg in error.args)

    def rewriter(self, *, is_json: bool, restore: bool) -> TextRewriter:
        """Return a rewriter that redacts the text of an answer while it is streamed.

        Args:
            is_json: Whether the text is JSON.
            restore: Whether placeholders are replaced with their values.
        """
        if is_json:
            return JsonRedaction(self._restored if restore else self._text)
        rewriter: TextRewriter = self._rewriter("the answer")
        return _Restoring(rewriter, self.restored) if restore else rewriter

    def restored(self, text: str) -> str:
        """Return a text with the placeholders of this run replaced with their values."""
        if self.replacements is None:
            return text
        return self.placeholders.replace(text, self.replacements.value_of)

    def restored_value(self, value: Any) -> Any:
        """Return data with the placeholders of this run replaced with their values."""
        return change_value(value, self.restored)

    def restored_json(self, text: str) -> str:
        """Return JSON text with the placeholders in its strings replaced with their values."""
        return change_json(text, self.restored)

    def _restored(self, text: str) -> str:
        return self.restored(self._text(text))

    def _mark_placeholders(self, text: str, _field: str) -> str:
        self.placeholders.replace(text, self._mark_used)
        return text

    def _mark_used(self, place: str) -> str:
        if self.replacements is not None:
            self.replacements.mark_used(place)
        return place

    def _text_or_json(self, text: str, where: str) -> str:
        if text.startswith("data:") and ";base64," in text[:256]:
            return text  # an image or a file
        changed = self._redacted_whole.get(text)
        if changed is None:
            changed = self._json(text, where) if looks_like_json(text) else self._text(text, where)
            self._redacted_whole[text] = changed
        return changed

    def _json(self, text: str, where: str) -> str:
        return change_json(text, lambda part: self._text(part, where))

    def _text(self, text: str, where: str = "the answer") -> str:
        known = self._redacted.get(text)
        if known is None:
            rewriter = self._rewriter(where)
            # Unchanged text is cached as the same object, so that an identity check shows no change.
            changed = rewriter.feed(text) + rewriter.end()
            known = self._redacted[text] = text if changed == text else changed
        return text if known == text else known

    def _rewriter(self, where: str) -> TextRedaction:
        replace: Callable[[str, str], str]
        if self.replacements is not None:
            replace = self.replacements.place_for
        else:

            def replace(rule: str, _value: str) -> NoReturn:
                raise RedactedContentBlockedError(rule=rule, where=where)

        return TextRedaction(self.rules, replace, self.placeholders)


class _Restoring:
    """Redacts a streamed text and restores the output. The rewriter never splits a placeholder."""

    def __init__(self, rewriter: TextRewriter, restore: Callable[[str], str]) -> None:
        self._rewriter = rewriter
        self._restore = restore

    def feed(self, piece: str) -> str:
        return self._restore(self._rewriter.feed(piece))

    def end(self) -> str:
        return self._restore(self._rewriter.end())
