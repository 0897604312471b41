"""A fake chat model for langchain that answers at once, in place of the framework's model classes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from benchmarks.peers.frameworks import facts

Wait = Callable[[], Awaitable[None]]


def _make_chunks() -> list[ChatGenerationChunk]:
    return [ChatGenerationChunk(message=AIMessageChunk(content=delta)) for delta in facts.DELTAS]


class FakeModel(BaseChatModel):
    """Answers at once, after checking its input.

    Attributes:
        text: The answer.
        call: The tool to call first, if any: its name and its arguments.
        instructions: The expected instructions.
        tools: The expected number of tools, including those for hand-offs.
        wait: Awaited before each answer.
    """

    text: str = facts.ANSWER
    call: tuple[str, dict[str, Any]] | None = None
    instructions: str = facts.INSTRUCTIONS
    tools: int = 0
    wait: Wait = facts.do_not_wait

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Convert the tools as the class for OpenAI does; langchain's agents call this in every turn."""
        return self.bind(tools=[convert_to_openai_tool(tool, strict=strict) for tool in tools], **kwargs)

    def _generate(self, *_args: Any, **_kwargs: Any) -> ChatResult:
        raise RuntimeError("this model is async")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._check(messages, kwargs)
        await self.wait()
        message = AIMessage(content=self.text)
        if self.call is not None and isinstance(messages[-1], HumanMessage):
            name, arguments = self.call
            message = AIMessage(
                content="", tool_calls=[ToolCall(name=name, args=arguments, id=facts.CALL_ID)]
            )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _check(self, messages: list[BaseMessage], asked: dict[str, Any]) -> None:
        facts.expect(messages[0].content, self.instructions)
        facts.expect(len(asked.get("tools", ())), self.tools)


class StreamingModel(FakeModel):
    """Streams ``facts.DELTAS`` in chunks that are created beforehand."""

    _chunks: list[ChatGenerationChunk] = PrivateAttr(default_factory=_make_chunks)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        self._check(messages, kwargs)
        await self.wait()
        for chunk in self._chunks:
            # The framework wrote the id of the previous run here.
            chunk.message.id = None
            yield chunk
