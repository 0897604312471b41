"""What a judge replied, also where the SDK could make nothing of it."""

from __future__ import annotations

from typing import Any

import attrs
from agents import ItemHelpers, MaxTurnsExceeded, ModelBehaviorError, ModelResponse
from agents.exceptions import ModelRefusalError

from kantan_agents.errors import code_of
from kantan_agents.interception import Middleware, ModelCall, ModelNext
from kantan_agents.structured import as_dict

_UNREADABLE = "E40"


@attrs.frozen
class Reply:
    """A judge's answer.

    Attributes:
        text: What the model wrote last; None if it wrote nothing.
        output: The final output; None if there is none.
        said: All it wrote, where it was asked for a structured output more than once.
    """

    text: str | None
    output: Any = None
    said: str | None = None


class ReplyNote(Middleware):
    """Keeps the last answer of the model with the run: errors of the SDK do not say what it was."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Ask the model and note its answer."""
        answer = await call_next(call)
        call.run.state[ReplyNote] = answer
        return answer


def reply_of(result: Any) -> Reply:
    """Return the reply in a run's result; the result itself where a middleware has made it."""
    output = getattr(result, "final_output", result)
    text = ItemHelpers.text_message_outputs(getattr(result, "new_items", None) or [])
    if not text and output is not None:
        text = output if isinstance(output, str) else str(as_dict(output, json=True) or output)
    return Reply(text or None, output)


def unusable_reply(error: Exception) -> Reply | None:
    """Return the reply in which the SDK found no answer; None if the error is about anything else.

    Only what is wrong with the reply itself is a reason to ask in another way. A lost connection, a used-up
    budget or a deadline would be no better for it.
    """
    if isinstance(error, (ModelBehaviorError, ModelRefusalError, MaxTurnsExceeded)):
        pass
    elif code_of(error) != _UNREADABLE:
        return None
    text = getattr(error, "text", None)
    if not isinstance(text, str):
        run = getattr(error, "kantan_run", None)
        answer = run.state.get(ReplyNote) if run is not None else None
        items = getattr(answer, "output", None) or []
        text = "".join(ItemHelpers.extract_text(item) or "" for item in items)
    tries = [getattr(attempt, "text", None) for attempt in getattr(error, "attempts", ())]
    return Reply(text or None, said="\n".join(said for said in tries if isinstance(said, str)) or None)
