"""``Chain``: what follows an answer."""

from __future__ import annotations

import attrs
from agents import ModelResponse, Usage

from kantan_agents.models.finish_reasons import described_cut, replaced
from kantan_agents.models.structured.requests.failure import clear_failure, set_failure, unfit_output
from kantan_agents.models.structured.requests.fetch import Fetch
from kantan_agents.models.structured.requests.final_tool import text_message
from kantan_agents.models.structured.requests.reading import OutputReading, final_text, read
from kantan_agents.models.structured.requests.request import Request


@attrs.define
class Chain:
    """All requests for one structured output, from the SDK's ``first`` to the ``next``."""

    first: Request
    fetch: Fetch
    next: Request
    usage: Usage | None = None

    @classmethod
    def of(cls, request: Request) -> Chain:
        """Return a new chain for an SDK request."""
        clear_failure()
        return cls(request, Fetch.of(request.schema), request)

    def settled(self, answer: ModelResponse) -> ModelResponse | None:
        """Return the answer for the SDK, or None to send ``next``; E40 on failure."""
        answer = self._with_all_usage(answer)
        text = final_text(answer.output)
        if text is None:
            return answer
        reading = read(text, self.fetch.schema)
        if reading.text is not None:
            self.fetch.accepted(text)
            return answer if reading.text == text else _with_text(answer, reading.text)
        mode = self.fetch.mode
        cut = described_cut(answer, self.first.settings.max_tokens)
        step = self.fetch.rejected(text, reading, cut)
        if cut is not None:
            reading = attrs.evolve(reading, is_partial=True)
        if step == "end":
            return self._failed(answer, text)
        # A conversation stored by the provider already contains the request.
        is_stored = self.first.options.get("conversation_id") is not None
        if step == "other mode" and not is_stored:
            self.next = self.first
        else:
            self.next = _repair_request(self.first, answer, text, _feedback(reading, mode))
        return None

    def _failed(self, answer: ModelResponse, text: str) -> ModelResponse:
        error = unfit_output(self.fetch.schema.name(), self.fetch.attempts)
        if not text:  # else the SDK would use up the turns
            raise error
        set_failure(self.fetch.schema, error)
        return answer

    def _with_all_usage(self, answer: ModelResponse) -> ModelResponse:
        if self.usage is None:
            self.usage = answer.usage
            return answer
        total = Usage()
        total.add(self.usage)
        total.add(answer.usage)
        self.usage = total
        return replaced(answer, usage=total)


def _with_text(answer: ModelResponse, text: str) -> ModelResponse:
    index = max(n for n, item in enumerate(answer.output) if getattr(item, "type", None) == "message")
    items = list(answer.output)
    items[index] = text_message(text, getattr(items[index], "status", None))
    return replaced(answer, output=items)


def _feedback(reading: OutputReading, mode: str | None) -> str:
    if reading.is_partial:
        problem = (
            "The JSON in your reply breaks off, or part of it cannot be read. Be brief, and write valid JSON."
        )
    elif reading.problems:
        problem = "Your reply does not fit the required schema:\n" + "\n".join(
            f"- {one}" for one in reading.problems[:20]
        )
    else:
        problem = "Your reply contains no JSON object that could be read."
    request = (
        "Call the tool for the final answer again, with all of it, corrected."
        if mode == "tool"
        else "Reply again with the whole JSON object, corrected, and nothing else."
    )
    return f"{problem}\n{request}"


def _repair_request(first: Request, answer: ModelResponse, text: str, feedback: str) -> Request:
    message = {"role": "user", "content": feedback}
    if first.options.get("conversation_id") is not None:  # the provider has stored the reply
        return attrs.evolve(first, input=[message])
    if first.options.get("previous_response_id") is not None and answer.response_id:
        request = attrs.evolve(first, input=[message])
        return request.with_options(previous_response_id=answer.response_id)
    items = first.input if isinstance(first.input, list) else [{"role": "user", "content": first.input}]
    reply = [{"role": "assistant", "content": text}] if text else []
    return attrs.evolve(first, input=[*items, *reply, message])
