"""From a model's answer to the next step: taken, asked again in another form, sent back, or given up."""

from __future__ import annotations

import attrs
from agents import ModelResponse, Usage

from kantan_agents.structured.asking.failure import begin_anew, give_up, unfit_output
from kantan_agents.structured.asking.fetch import Fetch
from kantan_agents.structured.asking.final_tool import text_message
from kantan_agents.structured.asking.reading import Reading, final_text, read
from kantan_agents.structured.asking.request import Request


@attrs.define
class Chain:
    """One structured answer, from the first request to what the SDK gets.

    Attributes:
        first: What the SDK asked.
        fetch: What was tried.
        next: What is to be asked now.
        usage: What all requests so far have used.
    """

    first: Request
    fetch: Fetch
    next: Request
    usage: Usage | None = None

    @classmethod
    def of(cls, request: Request) -> Chain:
        """Return a new one for what the SDK asks."""
        begin_anew()
        return cls(request, Fetch.of(request.schema), request)

    def settled(self, answer: ModelResponse) -> ModelResponse | None:
        """Return what the SDK is to get, or None if ``next`` is to be asked.

        Raises:
            StructuredOutputError: E40, nothing is left to try and there is no text to hand on.
        """
        answer = self._with_all_usage(answer)
        text = final_text(answer.output)
        if text is None:
            return answer
        reading = read(text, self.fetch.schema)
        if reading.text is not None:
            self.fetch.taken(text)
            return answer if reading.text == text else _with_text(answer, reading.text)
        mode = self.fetch.mode
        step = self.fetch.not_taken(text, reading)
        if step == "end":
            return self._given_up(answer, text)
        # Where the provider keeps the conversation, what was asked is in it already.
        has_it = self.first.options.get("conversation_id") is not None
        if step == "other mode" and not has_it:
            self.next = self.first
        else:
            self.next = _sent_back(self.first, answer, text, _told(reading, mode))
        return None

    def _given_up(self, answer: ModelResponse, text: str) -> ModelResponse:
        error = unfit_output(self.fetch.schema.name(), self.fetch.attempts)
        if not text:  # the SDK would ask again, until the turns are used up
            raise error
        give_up(self.fetch.schema, error)
        return answer

    def _with_all_usage(self, answer: ModelResponse) -> ModelResponse:
        if self.usage is None:
            self.usage = answer.usage
            return answer
        total = Usage()
        total.add(self.usage)
        total.add(answer.usage)
        self.usage = total
        return ModelResponse(answer.output, total, answer.response_id, answer.request_id)


def _with_text(answer: ModelResponse, text: str) -> ModelResponse:
    place = max(n for n, item in enumerate(answer.output) if getattr(item, "type", None) == "message")
    items = list(answer.output)
    items[place] = text_message(text)
    return ModelResponse(items, answer.usage, answer.response_id, answer.request_id)


def _told(reading: Reading, mode: str | None) -> str:
    """Return what the model is told of a reply that was not taken."""
    if reading.is_partial:
        said = (
            "The JSON in your reply breaks off, or part of it cannot be read. Be brief, and write valid JSON."
        )
    elif reading.problems:
        said = "Your reply does not fit the required schema:\n" + "\n".join(
            f"- {problem}" for problem in reading.problems[:20]
        )
    else:
        said = "Your reply holds no JSON object that could be read."
    how = (
        "Call the tool for the final answer again, with all of it, corrected."
        if mode == "tool"
        else "Reply again with the whole JSON object, corrected, and nothing else."
    )
    return f"{said}\n{how}"


def _sent_back(first: Request, answer: ModelResponse, text: str, told: str) -> Request:
    feedback = {"role": "user", "content": told}
    if first.options.get("conversation_id") is not None:  # the provider has the reply already
        return attrs.evolve(first, input=[feedback])
    if first.options.get("previous_response_id") is not None and answer.response_id:
        request = attrs.evolve(first, input=[feedback])
        return request.with_options(previous_response_id=answer.response_id)
    asked = first.input if isinstance(first.input, list) else [{"role": "user", "content": first.input}]
    reply = [{"role": "assistant", "content": text}] if text else []
    return attrs.evolve(first, input=[*asked, *reply, feedback])
