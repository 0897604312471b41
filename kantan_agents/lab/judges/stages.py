"""The stages of a judgment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import attrs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt

from kantan_agents.agent import Agent
from kantan_agents.lab.judges.replies import JudgeReply, recorded_calls, reply_of, unusable_reply
from kantan_agents.lab.judges.tags import read_tags
from kantan_agents.lab.judges.verdict import Method
from kantan_agents.models.structured import AgentOutput, OutputSchema
from kantan_agents.models.structured.requests.forms import Delivery


def _match_specification(schema: dict[str, Any]) -> None:
    # Pydantic adds titles, and the docstring as a description. The model would see both.
    schema.pop("description", None)
    schema.pop("title", None)
    for field in schema["properties"].values():
        field.pop("title", None)


_NUMERAL = re.compile(r"\s*(\d{1,9})(?:\.0{1,9})?\s*")


def _whole(value: Any) -> Any:
    """Models write 2, 2.0 and "2"."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    found = _NUMERAL.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found is not None else value


# The schema shows the model an integer.
_Number = Annotated[StrictInt, BeforeValidator(_whole)]


class Judgment(BaseModel):
    """Output of the stage ``structured_output`` (JSON schema ``judgment``)."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_match_specification)

    step: _Number = Field(description="Matched rule number (1-based)")
    reason: str = Field(description="Brief justification")


class Evaluation(BaseModel):
    """Output of the stage ``ai_judge`` (JSON schema ``evaluation``)."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_match_specification)

    matched_index: _Number
    reason: str


def single_reply(output_type: type[BaseModel]) -> AgentOutput:
    """Return an output type for which a stage takes one reply, even if it does not fit.

    Schemas of all judges are alike, so they share their knowledge about a model.
    """
    return AgentOutput.delivered(OutputSchema(output_type), _SINGLE)


_SINGLE = Delivery(is_single=True, memory_key="kantan_agents.judges")


@attrs.frozen
class StageResult:
    """The result of a stage; ``step`` counts from 1, None without a decision."""

    step: int | None
    method: Method
    reason: str | None = None
    problem: str | None = None


@attrs.frozen(eq=False)
class JudgeStage:
    """An agent, created once, and a reader of its replies."""

    name: Method
    agent: Agent[Any]
    read: Callable[[JudgeReply], StageResult]

    async def run(self, content: str, context: Any, options: dict[str, Any]) -> JudgeReply:
        """Return the agent's reply, even an unusable one."""
        with recorded_calls() as calls:
            try:
                done = await self.agent.run_async(content, context, **options)
            except Exception as error:
                reply = unusable_reply(error, calls)
                if reply is None:
                    raise
                return reply
            return reply_of(done["result"], calls)

    def result(self, reply: JudgeReply) -> StageResult:
        """Return the decision, if the reply is whole."""
        if reply.problem is not None:
            return StageResult(None, self.name, problem=reply.problem)
        return self.read(reply)


def read_judgment(reply: JudgeReply, count: int, tag: str) -> StageResult:
    """Read a ``Judgment``, or else a tag in the text."""
    method: Method = "structured_output"
    if isinstance(reply.output, Judgment):
        step, problem = _in_range("step", reply.output.step, count)
        return StageResult(step, method, reply.output.reason if step else None, problem)
    found = read_tags(reply.all_texts or reply.text or "", count, tag)
    if found.step is not None:
        return StageResult(found.step, "phase3_tag")
    return StageResult(None, method, problem=f"no JSON object with step and reason, and {found.problem}")


def read_tag(reply: JudgeReply, count: int, tag: str) -> StageResult:
    """Read the tag of a reply."""
    found = read_tags(reply.text or "", count, tag)
    return StageResult(found.step, "phase3_tag", problem=found.problem)


def read_evaluation(reply: JudgeReply, count: int, method: Method) -> StageResult:
    """Read an ``Evaluation``."""
    if not isinstance(reply.output, Evaluation):
        return StageResult(None, method, problem="no JSON object with matched_index and reason")
    step, problem = _in_range("matched_index", reply.output.matched_index, count)
    return StageResult(step, method, reply.output.reason if step else None, problem)


def _in_range(name: str, number: int, count: int) -> tuple[int | None, str | None]:
    if 1 <= number <= count:
        return number, None
    return None, f"{name} {number} matches no rule from 1 to {count}"
