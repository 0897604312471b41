"""``RecordedForms``: the recorded forms of structured output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kantan_agents.models.structured.requests.encoding import EXAMPLE_WORDS
from kantan_agents.models.structured.requests.forms import (
    EXAMPLE,
    FORCED_TOOL,
    JSON_OBJECT,
    JSON_OBJECT_OF_SCHEMA,
    NATIVE,
    PROMPT,
    TOOL,
    Form,
)
from kantan_agents.models.structured.requests.memory import FormMemory, FormTarget
from kantan_agents.traces.capture import ModelCallRecord


class RecordedForms(FormMemory):
    """Puts the recorded forms first.

    Otherwise a replay would depend on what this process has learned about the provider.
    """

    def __init__(self, calls: Sequence[ModelCallRecord]) -> None:
        super().__init__()
        self._calls = calls

    def in_order(self, target: FormTarget, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        """Return the recorded forms in their order, then the others."""
        calls = [one for one in self._calls if one.model == target.model] or self._calls
        recorded = dict.fromkeys(form for form in map(_form_of, calls) if form in forms)
        first = next(iter(recorded), None)
        if first is None:
            return super().in_order(target, forms)
        for form in forms[: forms.index(first)]:
            if form not in recorded:
                self.refused(target, form)  # otherwise the recorded run would have tried it first
        return super().in_order(target, (*recorded, *(form for form in forms if form not in recorded)))


def _form_of(call: ModelCallRecord) -> Form | None:
    output, settings = call.request.output, call.request.settings
    if output is None:
        return None
    if output.mode == "tool":
        return FORCED_TOOL if settings.get("tool_choice") == "required" else TOOL
    if output.mode == "prompt":
        wanted = _format_in(settings.get("extra_body"))
        if wanted is not None:
            return JSON_OBJECT_OF_SCHEMA if "schema" in wanted else JSON_OBJECT
        # After a handoff, the last item is a result, and the example is in the instructions.
        places = (call.request.instructions, call.request.input[-1:])
        return EXAMPLE if any(EXAMPLE_WORDS in str(place) for place in places) else PROMPT
    return NATIVE


def _format_in(body: Any) -> Mapping[str, Any] | None:
    if not isinstance(body, Mapping):
        return None
    text = body.get("text")
    formats = (body.get("response_format"), text.get("format") if isinstance(text, Mapping) else None)
    return next(
        (one for one in formats if isinstance(one, Mapping) and one.get("type") == "json_object"), None
    )
