"""The questions of ``models check``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
from agents import ModelResponse, ModelSettings, RunConfig

from kantan_agents.agent import Agent
from kantan_agents.agent.bridge.model_answers import usage_of_run
from kantan_agents.cli.terminal.plain import shortened
from kantan_agents.core.events import TextDelta
from kantan_agents.core.interception import Middleware, ModelCall, ModelNext
from kantan_agents.core.pipeline import run_result
from kantan_agents.models.structured import OutputAttempt

_LONGEST: Final = 60
_UNRECORDED: Final = RunConfig(tracing_disabled=True)


@attrs.frozen
class Answer:
    """The result; ``usage`` may be empty."""

    works: bool
    detail: str
    usage: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Capital:
    """The requested structured output."""

    city: str
    country: str


class _Attempts(Middleware):
    def __init__(self) -> None:
        self.attempts: Sequence[OutputAttempt] = ()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        self.attempts = call._structured.attempts
        return await call_next(call)


@attrs.define
class Questions:
    """The questions for one model."""

    model: str
    max_tokens: int
    attempts: Sequence[OutputAttempt] = ()

    def agent(self, **options: Any) -> Agent[Any]:
        """Return an agent without tools and other additions."""
        settings = ModelSettings(max_tokens=self.max_tokens)
        return Agent(
            "check",
            "Answer briefly.",
            model=self.model,
            model_settings=settings,
            tool_providers=None,
            **options,
        )

    async def text(self) -> Answer:
        """Request text."""
        context = await self.agent().run_async("Say hello.", run_config=_UNRECORDED)
        return self._of_text(context)

    async def stream(self) -> Answer:
        """Request text, and count the streamed pieces."""
        pieces = 0
        async with self.agent().stream("Count from one to five.", run_config=_UNRECORDED) as run:
            async for event in run:
                pieces += isinstance(event, TextDelta)
        answer = self._of_text(run.context)
        if not answer.works:
            return answer
        return attrs.evolve(
            answer, works=pieces > 1, detail="in one piece" if pieces == 1 else f"{pieces} pieces"
        )

    async def tool_call(self) -> Answer:
        """Request a result that needs a tool."""
        calls: list[tuple[int, int]] = []

        def add(a: int, b: int) -> int:
            """Add two numbers."""
            calls.append((a, b))
            return a + b

        agent = self.agent(tools=[add], tool_use_behavior="stop_on_first_tool")
        question = "What is 4821 plus 3977? Call the tool `add`."
        result = run_result(await agent.run_async(question, max_turns=2, run_config=_UNRECORDED))
        if calls:
            return Answer(works=True, detail=f"add{calls[0]}")
        names = [getattr(item, "name", None) for answer in result.raw_responses for item in answer.output]
        if "add" in names:
            return Answer(works=False, detail="the arguments of the call do not fit the tool")
        said = shortened(str(result.final_output), _LONGEST)
        return Answer(works=False, detail=f"the tool was not called; the answer was: {said}")

    async def json(self) -> Answer:
        """Request a structured output."""
        noted = _Attempts()
        agent = self.agent(output_type=Capital, middleware=[noted])
        try:
            context = await agent.run_async("Name the capital of France.", run_config=_UNRECORDED)
        finally:
            self.attempts = noted.attempts
        found = run_result(context).final_output
        said = shortened(f"{found.city}, {found.country}", _LONGEST)
        return Answer(works=True, detail=f"{self.attempts[-1].mode}: {said}")

    def _of_text(self, context: Any) -> Answer:
        result = run_result(context)
        text = str(result.final_output).strip()
        numbers = usage_of_run(result.context_wrapper.usage, result.raw_responses)
        usage = {} if numbers["requests_without_usage"] else numbers
        if text:
            return Answer(works=True, detail=shortened(text, _LONGEST), usage=usage)
        detail = f"no text in {self.max_tokens} tokens; a model that reasons needs more: --max-tokens"
        return Answer(works=False, detail=detail, usage=usage)
