"""``Fetch``: attempts for one structured output."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.structured.requests.agent_output import AgentOutput
from kantan_agents.models.structured.requests.families import Family
from kantan_agents.models.structured.requests.forms import NATIVE, PROMPT, TOOL_FORMS, Form, OutputMode
from kantan_agents.models.structured.requests.memory import FORMS, FormMemory, FormTarget
from kantan_agents.models.structured.requests.reading import OutputReading


@attrs.frozen
class OutputAttempt:
    """One request for a structured output, and its result.

    Attributes:
        mode: ``"native"``, ``"tool"`` or ``"prompt"``.
        model: Name of the model.
        text: The model's reply; None if the provider rejected the request.
        problems: Why the reply was rejected, first that it was cut off. Empty if it was accepted, or if it is
            complete and has no JSON.
        refusal: The provider's message, if it rejected the request.
        fits: Whether the reply was accepted.
    """

    mode: str
    model: str
    text: str | None = None
    problems: tuple[str, ...] = ()
    refusal: str | None = None
    fits: bool = False

    def __str__(self) -> str:
        if self.refusal is not None:
            return f"{self.mode}: refused by the provider: {self.refusal}"
        if self.fits:
            return f"{self.mode}: fits"
        if self.problems:
            return f"{self.mode}: {'; '.join(self.problems[:3])}"
        return f"{self.mode}: {'no JSON in the reply' if (self.text or '').strip() else 'an empty reply'}"

    def as_dict(self, *, with_text: bool) -> dict[str, Any]:
        """Return it as a dict for a trace; ``with_text`` includes reply, problems and ``refusal``."""
        data: dict[str, Any] = {"mode": self.mode, "model": self.model, "fits": self.fits}
        if with_text:
            data |= {"text": self.text, "problems": list(self.problems), "refusal": self.refusal}
        return data


_NO_TOOL_MODE = (
    "cannot be 'tool' in a conversation that the provider stores (previous_response_id, conversation_id): "
    "the call of the final tool would never get a result, and the provider would refuse the next request"
)


@lru_cache(maxsize=64)
def known_forms(family: Family, wanted: OutputMode, has_tools: bool) -> tuple[Form, ...]:
    """Return a family's forms, best first."""
    known = family.forms_beside_tools if has_tools else family.forms
    if wanted == "auto":
        return known
    # The user's choice is tried even if it is known to fail.
    return tuple(form for form in known if form.mode == wanted and not form.sends_schema) or (Form(wanted),)


@attrs.frozen
class _Sent:
    target: FormTarget
    form: Form
    left: tuple[Form, ...]


@attrs.define
class Fetch:
    """The attempts for one structured output. ``memory`` is separate in a replay."""

    schema: AgentOutput
    repairs_left: int
    attempts: list[OutputAttempt] = attrs.field(factory=list)
    memory: FormMemory = FORMS
    _sent: _Sent | None = None
    _repeated: _Sent | None = None
    _spent: set[tuple[FormTarget, Form]] = attrs.field(factory=set)
    _slipped: bool = False

    @classmethod
    def of(cls, schema: AgentOutput) -> Fetch:
        """Return a fetch without attempts."""
        return cls(schema, schema.delivery.repairs)

    @property
    def mode(self) -> str | None:
        """The latest mode, if a model was called."""
        return None if self._sent is None else self._sent.form.mode

    def forms(self, target: FormTarget, family: Family, *, is_kept: bool) -> tuple[Form, ...]:
        """Return a target's forms, best first.

        E75 for output mode ``"tool"`` if the provider stores the conversation.
        """
        if self._repeated is not None and self._repeated.target == target:
            return (self._repeated.form,)
        known = known_forms(family, self.schema.delivery.mode, target.has_tools)
        if is_kept:
            known = tuple(form for form in known if form.mode != "tool")
            if not known:
                raise InvalidOptionError(option="output_mode", reason=_NO_TOOL_MODE)
        if self._spent:
            known = tuple(form for form in known if (target, form) not in self._spent) or known
        return self.memory.in_order(target, known)

    def sent(self, target: FormTarget, form: Form, left: tuple[Form, ...]) -> None:
        """Record a request and the remaining forms."""
        self._sent = _Sent(target, form, left)

    def refused(self, message: str) -> None:
        """Record that the provider rejected the request."""
        if self._sent is not None:
            attempt = OutputAttempt(self._sent.form.mode, self._sent.target.model, refusal=message)
            self.attempts.append(attempt)

    def slipped(self) -> None:
        """Ignore this form for later requests."""
        self._slipped = True

    def accepted(self, text: str) -> None:
        """Record that the reply fits."""
        self._record(text, (), fits=True)
        if self._sent is not None and not self._slipped and self.schema.delivery.mode != "native":
            self.memory.worked(self._sent.target, self._sent.form)

    def rejected(
        self, text: str, reading: OutputReading, cut: str | None = None
    ) -> Literal["other mode", "repair", "end"]:
        """Record that the reply does not fit, and return the next step.

        ``"other mode"`` if the reply ignores the mode, ``"end"`` without repairs.
        """
        self._record(text, reading.problems if cut is None else (cut, *reading.problems), fits=False)
        sent, self._sent = self._sent, None
        if cut is None:
            breaks_mode = sent is not None and self._breaks_mode(sent.form, reading)
        else:  # the model wrote text instead of the call
            breaks_mode = sent is not None and self._is_text_for_call(sent.form, text, reading)
        if sent is not None and breaks_mode:
            spent = TOOL_FORMS if sent.form in TOOL_FORMS else (sent.form,)
            self._spent.update((sent.target, form) for form in spent)
            is_single = self.schema.delivery.is_single
            if any(form not in spent and self._may_send(form, sent) for form in sent.left):
                if cut is None and self._is_unsupported(sent, text):
                    for form in spent if is_single else (sent.form,):
                        self.memory.refused(sent.target, form)
                else:
                    self._slipped = True
                if not is_single:
                    return "other mode"
        if not self.repairs_left:
            return "end"
        self.repairs_left -= 1
        self._repeated = sent
        return "repair"

    def _breaks_mode(self, form: Form, reading: OutputReading) -> bool:
        if self._repeated is not None or reading.is_partial:
            return False
        if not reading.problems:
            return True
        if form.mode == "native":
            return self.schema.is_violated_by(reading.value)
        return form == PROMPT and self.schema.is_foreign(reading.value)

    def _is_text_for_call(self, form: Form, text: str, reading: OutputReading) -> bool:
        return form in TOOL_FORMS and bool(text.strip()) and self._breaks_mode(form, reading)

    def _is_unsupported(self, sent: _Sent, text: str) -> bool:
        # A form that has worked must survive one empty or bad reply.
        if self._slipped or not text.strip():
            return False
        # Only for this answer: the schema would hide the tools of later requests.
        if sent.form in TOOL_FORMS and sent.target.has_tools and self._may_send(NATIVE, sent):
            return False
        return not self.memory.has_worked(sent.target, sent.form)

    def _may_send(self, form: Form, sent: _Sent) -> bool:
        # A form that is known to be rejected is no better.
        return form in sent.left and not self.memory.is_refused(sent.target, form)

    def _record(self, text: str, problems: tuple[str, ...], *, fits: bool) -> None:
        mode, model = "none", "none"  # a middleware answered instead of the model
        if self._sent is not None:
            mode, model = self._sent.form.mode, self._sent.target.model
        self.attempts.append(OutputAttempt(mode, model, text, problems, fits=fits))
