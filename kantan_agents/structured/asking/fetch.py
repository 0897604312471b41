"""Getting one structured answer out of a model: what was tried, and what is tried next."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.structured.asking.agent_output import AgentOutput
from kantan_agents.structured.asking.families import Family
from kantan_agents.structured.asking.forms import FORCED_TOOL, TOOL, Form, OutputMode
from kantan_agents.structured.asking.memory import FORMS, Target
from kantan_agents.structured.asking.reading import Reading


@attrs.frozen
class OutputAttempt:
    """One request for a structured output, and what came of it.

    Attributes:
        mode: ``"native"``, ``"tool"`` or ``"prompt"``.
        model: Name of the model that was asked.
        text: What it replied; None if the provider refused the request.
        problems: Why that was not taken, one a line; empty if nothing in it could be read, or all was well.
        refusal: What the provider said, if it refused the request.
        fits: Whether the reply was taken.
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
        if not (self.text or "").strip():
            return f"{self.mode}: an empty reply"
        return f"{self.mode}: {'; '.join(self.problems[:3]) or 'no JSON in the reply'}"

    def as_dict(self, *, with_text: bool) -> dict[str, Any]:
        """Return it for a trace; without what the model wrote where that must not be recorded."""
        told: dict[str, Any] = {"mode": self.mode, "model": self.model, "fits": self.fits}
        if with_text:
            told |= {"text": self.text, "problems": list(self.problems), "refusal": self.refusal}
        return told


_NO_TOOL_MODE = (
    "cannot be 'tool' in a conversation that the provider keeps (previous_response_id, conversation_id): "
    "there the call of the final tool would stay without a result, and the next request would be refused"
)
_TOOL_FORMS = (FORCED_TOOL, TOOL)


@lru_cache(maxsize=64)
def known_forms(family: Family, wanted: OutputMode, has_tools: bool) -> tuple[Form, ...]:
    """Return the forms to try for a family of providers, the best first.

    Args:
        family: What is known of the provider.
        wanted: The mode the user wants.
        has_tools: Whether there are tools or hand-offs beside.
    """
    known = family.forms_beside_tools if has_tools else family.forms
    if wanted == "auto":
        return known
    # What the user insists on is tried even where it is known not to work.
    return tuple(form for form in known if form.mode == wanted) or (Form(wanted),)


@attrs.frozen
class _Asked:
    """What was asked last: whom, in which form, and what could be tried instead."""

    target: Target
    form: Form
    left: tuple[Form, ...]


@attrs.define
class Fetch:
    """One structured answer on its way, over all attempts.

    Attributes:
        schema: What the answer must fit.
        repairs_left: How often a reply may still go back to the model.
        attempts: What was tried, in order.
    """

    schema: AgentOutput
    repairs_left: int
    attempts: list[OutputAttempt] = attrs.field(factory=list)
    _asked: _Asked | None = None
    _repeated: _Asked | None = None
    _spent: set[tuple[Target, Form]] = attrs.field(factory=set)
    _slipped: bool = False

    @classmethod
    def of(cls, schema: AgentOutput) -> Fetch:
        """Return a new one."""
        return cls(schema, schema.delivery.repairs)

    @property
    def mode(self) -> str | None:
        """The mode of the latest request; None if a middleware has answered in the model's place."""
        return None if self._asked is None else self._asked.form.mode

    def forms(self, target: Target, family: Family, *, is_kept: bool) -> tuple[Form, ...]:
        """Return the forms to try for a target, the best first.

        Args:
            target: Who is asked.
            family: What is known of its provider.
            is_kept: Whether the provider keeps the conversation.

        Raises:
            InvalidOptionError: E75, only tool mode is wanted, and the provider keeps the conversation.
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
        return FORMS.in_order(target, known)

    def asked(self, target: Target, form: Form, left: tuple[Form, ...]) -> None:
        """Note what is being asked, and which forms could be tried instead."""
        self._asked = _Asked(target, form, left)

    def refused(self, message: str) -> None:
        """Note that the provider has refused the request."""
        if self._asked is not None:
            target, form = self._asked.target, self._asked.form
            FORMS.refused(target, form)
            self.attempts.append(OutputAttempt(form.mode, target.model, refusal=message))

    def taken(self, text: str) -> None:
        """Note that the reply fits."""
        self._note(text, (), fits=True)
        if self._asked is not None and not self._slipped:
            FORMS.worked(self._asked.target, self._asked.form)

    def not_taken(self, text: str, reading: Reading) -> Literal["other mode", "repair", "end"]:
        """Note that the reply does not fit, and say what is to be done.

        Another mode is for replies that show that the provider or the model does not keep to this one; a
        reply that only does not fit goes back.
        """
        self._note(text, reading.problems, fits=False)
        asked, self._asked = self._asked, None
        if asked is not None and self._breaks_mode(asked.form, reading):
            spent = _TOOL_FORMS if asked.form in _TOOL_FORMS else (asked.form,)
            self._spent.update((asked.target, form) for form in spent)
            if any(form not in spent for form in asked.left):
                if self._tells_of_provider(asked, text):
                    FORMS.refused(asked.target, asked.form)
                else:
                    self._slipped = True
                return "other mode"
        if not self.repairs_left:
            return "end"
        self.repairs_left -= 1
        self._repeated = asked
        return "repair"

    def _breaks_mode(self, form: Form, reading: Reading) -> bool:
        if self._repeated is not None or reading.is_partial:
            return False
        return not reading.problems or (form.mode == "native" and self.schema.is_broken_by(reading.value))

    def _tells_of_provider(self, asked: _Asked, text: str) -> bool:
        # An empty reply, or one bad reply in a form that has worked, is no reason to ask worse for ever.
        return bool(text.strip()) and not FORMS.has_worked(asked.target, asked.form)

    def _note(self, text: str, problems: tuple[str, ...], *, fits: bool) -> None:
        mode, model = "none", "none"  # a middleware has answered in the model's place
        if self._asked is not None:
            mode, model = self._asked.form.mode, self._asked.target.model
        self.attempts.append(OutputAttempt(mode, model, text, problems, fits=fits))
