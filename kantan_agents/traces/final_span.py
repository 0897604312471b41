"""The data of a run's final span, messages for readers of the SDK's spans; and what is recorded of a span."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from sys import getsizeof
from typing import Any

import agents
from agents import FunctionSpanData
from agents.tool import FunctionToolResult

Messages = Sequence[Mapping[str, Any]] | None


class GenerationSpanData(agents.GenerationSpanData):
    """The user's input and the final output of a run, on its final ``generation`` span (spec 5.3).

    Input and output are messages, as the SDK declares them: instrumentations fail on other types. They are
    created when they are first read, as copies: a trace processor may change them, and the items that the
    caller passed stay as they are. kantan-llm's database has the input and the output themselves, as its
    search and its analysis look for them there; ``recorded`` returns these.

    Its model is the name of the agent. Instrumentations expect a name, but that of a model would make them
    count this span as one more call of it. kantan-llm's database has none.

    The class has the SDK's name because some instrumentations decide by the names of classes.

    Args:
        agent_name: The agent that was run.
        given: The user's input, a str or a list of items.
        answer: The final output as JSON data; a rubric in kantan-llm's shape.
        model_config: How a structured output was requested.
    """

    def __init__(
        self,
        agent_name: str,
        given: Any = None,
        answer: Any = None,
        model_config: Mapping[str, Any] | None = None,
    ) -> None:
        # Not the SDK's __init__, which would set input and output.
        self._given, self._answer = given, answer
        self._input: Messages = None
        self._output: Messages = None
        self.model = agent_name
        self.usage = None
        self.model_config = model_config

    @property
    def input(self) -> Messages:
        """The input as messages; setting it changes what is recorded too."""
        if self._input is None:
            self._input = copied_data(input_messages(self._given))
        return self._input

    @input.setter  # noqa: A003
    def input(self, messages: Messages) -> None:
        self._input = self._given = messages

    @property
    def output(self) -> Messages:
        """The output as one message; setting it changes what is recorded too."""
        if self._output is None:
            self._output = output_messages(self._answer)
        return self._output

    @output.setter
    def output(self, messages: Messages) -> None:
        self._output = self._answer = messages

    def size_of_texts(self) -> int | None:
        """Return the bytes that input and output take; None if they may change.

        They may if they are not texts, or if a trace processor has got the messages.
        """
        given, answer = self._given, self._answer
        if type(given) is not str or type(answer) is not str or self.model_config is not None:
            return None
        if self._input is not None or self._output is not None:
            return None
        return getsizeof(given) + getsizeof(answer)

    def recorded(self) -> dict[str, Any]:
        """Return the exported data with input and output as kantan-llm's database stores them.

        A trace processor may have changed the messages, for example to remove a text. Then they are recorded.
        """
        return {
            **self.export(),
            "model": None,
            "input": self._given if self.input == input_messages(self._given) else self.input,
            "output": self._answer if self.output == output_messages(self._answer) else self.output,
        }


def input_messages(given: Any) -> Messages:
    """Return the input of a run, a str or a list of items, as the SDK types the input of a span."""
    if given is None:
        return None
    items = given if isinstance(given, list) else [given]
    return [item if isinstance(item, Mapping) else _message("user", item) for item in items]


def output_messages(answer: Any) -> Messages:
    """Return the final output of a run as one message; a structured output as JSON."""
    return None if answer is None else [_message("assistant", answer)]


def recorded_export(span: Any) -> dict[str, Any] | None:
    """Return the export of any span as it is recorded.

    The final span of a run has texts instead of messages, the span of a tool the tool's output.
    """
    exported: dict[str, Any] | None = span.export()
    data = getattr(span, "span_data", None)
    if exported and isinstance(data, GenerationSpanData):
        exported["span_data"] = data.recorded()
    elif exported and isinstance(data, FunctionSpanData):
        exported["span_data"] = with_tool_output(exported["span_data"], data)
    return exported


def copied_data(value: Any) -> Any:
    """Return a copy of the dicts and lists in some data."""
    # Most values are texts, and a conversation may have thousands of items.
    if isinstance(value, dict):
        return {key: inner if isinstance(inner, str) else copied_data(inner) for key, inner in value.items()}
    return [copied_data(inner) for inner in value] if isinstance(value, list) else value


def _message(role: str, content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return {"role": role, "content": text}


def with_tool_output(exported: dict[str, Any], span_data: FunctionSpanData) -> dict[str, Any]:
    """Return the export of a tool's span with what the tool has given to the model; None if it has not run.

    For a call that waits for an approval, or that a person has refused, the SDK puts a result of its own on
    the span. As text, that is pages of its settings.
    """
    result = span_data.output
    return {**exported, "output": result.output} if isinstance(result, FunctionToolResult) else exported
