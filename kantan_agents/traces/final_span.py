"""The data of a run's final span."""

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

    Instrumentations fail on other types than messages, require a ``model``, and compare class names. A
    model's name would count as one more model call, so it is the agent's; the database stores none. Messages
    are copies, because a trace processor may change them. kantan-llm looks for the plain values of
    ``recorded``.
    """

    def __init__(
        self,
        agent_name: str,
        given: Any = None,
        answer: Any = None,
        model_config: Mapping[str, Any] | None = None,
    ) -> None:
        # Not the SDK's __init__, which would set both.
        self._given, self._answer = given, answer
        self._input: Messages = None
        self._output: Messages = None
        self.model = agent_name
        self.usage = None
        self.model_config = model_config

    @property
    def input(self) -> Messages:
        """Messages; setting them changes the recorded input too."""
        if self._input is None:
            self._input = copied_data(input_messages(self._given))
        return self._input

    @input.setter  # noqa: A003
    def input(self, messages: Messages) -> None:
        self._input = self._given = messages

    @property
    def output(self) -> Messages:
        """Messages; setting them changes the recorded output too."""
        if self._output is None:
            self._output = output_messages(self._answer)
        return self._output

    @output.setter
    def output(self, messages: Messages) -> None:
        self._output = self._answer = messages

    def size_of_texts(self) -> int | None:
        """Return the bytes of both; None if they may change.

        They may unless they are strings, or once a trace processor has read them.
        """
        given, answer = self._given, self._answer
        if type(given) is not str or type(answer) is not str or self.model_config is not None:
            return None
        if self._input is not None or self._output is not None:
            return None
        return getsizeof(given) + getsizeof(answer)

    def recorded(self) -> dict[str, Any]:
        """Return the export with plain values, or with changed messages, such as redacted ones."""
        return {
            **self.export(),
            "model": None,
            "input": self._given if self.input == input_messages(self._given) else self.input,
            "output": self._answer if self.output == output_messages(self._answer) else self.output,
        }


def input_messages(given: Any) -> Messages:
    """Return a run's input as span input."""
    if given is None:
        return None
    items = given if isinstance(given, list) else [given]
    return [item if isinstance(item, Mapping) else _message("user", item) for item in items]


def output_messages(answer: Any) -> Messages:
    """Return a run's final output as one message."""
    return None if answer is None else [_message("assistant", answer)]


def recorded_export(span: Any) -> dict[str, Any] | None:
    """Return a span's export as recorded."""
    exported: dict[str, Any] | None = span.export()
    data = getattr(span, "span_data", None)
    if exported and isinstance(data, GenerationSpanData):
        exported["span_data"] = data.recorded()
    elif exported and isinstance(data, FunctionSpanData):
        exported["span_data"] = with_tool_output(exported["span_data"], data)
    return exported


def copied_data(value: Any) -> Any:
    """Copy nested dicts and lists."""
    # A conversation may have thousands of items, mostly strings.
    if isinstance(value, dict):
        return {key: inner if isinstance(inner, str) else copied_data(inner) for key, inner in value.items()}
    return [copied_data(inner) for inner in value] if isinstance(value, list) else value


def _message(role: str, content: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
    return {"role": role, "content": text}


def with_tool_output(exported: dict[str, Any], span_data: FunctionSpanData) -> dict[str, Any]:
    """Return a tool span's export with the model's output, None if the tool did not run.

    The SDK would record a rejected or waiting call as pages of settings.
    """
    result = span_data.output
    return {**exported, "output": result.output} if isinstance(result, FunctionToolResult) else exported
