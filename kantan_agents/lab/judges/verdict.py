"""The result of a judgment."""

from __future__ import annotations

from typing import Literal

import attrs

from kantan_agents.lab.judges.rules import StatusRule
from kantan_agents.lab.judges.tags import DEFAULT_TAG, tag_text
from kantan_agents.models.structured.requests.forms import Mode

Method = Literal["structured_output", "phase3_tag", "phase1_tag", "ai_judge", "ai_judge_fallback"]
LogMethod = Literal["structured_output", "tag_fallback", "ai_judge"]

_LOGGED: dict[Method, LogMethod] = {
    "structured_output": "structured_output",
    "phase3_tag": "tag_fallback",
    "phase1_tag": "tag_fallback",
    "ai_judge": "ai_judge",
    "ai_judge_fallback": "ai_judge",
}


@attrs.frozen
class StageAttempt:
    """One stage of a judgment that was tried.

    Attributes:
        stage: Its name: ``structured_output``, ``phase3_tag``, ``phase1_tag``, ``ai_judge`` or
            ``ai_judge_fallback``.
        instruction: The rendered instructions of the judge; empty if no model was called.
        reply: The judge's reply, or the judged output if no model was called; None without any text.
        problem: Why this stage did not decide; None if it did.
        model: Name of the model that replied; None if no model was called or it has no name.
        mode: How the JSON was requested: ``native``, ``tool`` or ``prompt`` (``Agent(output_mode=...)``);
            None if no JSON was requested.
        usage: ``requests``, ``input_tokens``, ``output_tokens`` and ``total_tokens`` of this stage; None
            without a reply of a model. Requests that the provider rejected are not counted.
    """

    stage: Method
    instruction: str
    reply: str | None
    problem: str | None = None
    model: str | None = None
    mode: Mode | None = None
    usage: dict[str, int] | None = None


@attrs.frozen
class StatusVerdict:
    """The rule that an output meets.

    Attributes:
        rule_index: Index of the rule in the list, from 0.
        rule: The rule.
        method: How it was decided: ``structured_output``, ``phase3_tag`` (a tag in the judge's reply),
            ``phase1_tag`` (a tag in the output itself), ``ai_judge``, or ``ai_judge_fallback`` (``ai_judge``
            because the output contained no tag).
        reason: The judge's reason; None if a tag decided.
        attempts: The stages that were tried, in order; the last one decided.
        tag: The tag of the rule, such as ``[MOVEMENT:2]``, whether or not a tag decided.
    """

    rule_index: int
    rule: StatusRule
    method: Method
    reason: str | None = None
    attempts: tuple[StageAttempt, ...] = attrs.field(default=(), repr=False)
    tag: str = attrs.field(repr=False, kw_only=True)

    @tag.default
    def _default_tag(self) -> str:
        return tag_text(DEFAULT_TAG, self.step)

    @property
    def step(self) -> int:
        """Number of the rule, from 1, as in tags and in the judge's replies."""
        return self.rule_index + 1

    @property
    def log_method(self) -> LogMethod:
        """The method as written to the log: ``structured_output``, ``tag_fallback`` or ``ai_judge``."""
        return _LOGGED[self.method]
