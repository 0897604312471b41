"""A judge's reply, taken from the run's result or from the error the SDK raised for an unusable reply."""

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
    """A judge's reply.

    Attributes:
        text: The last text the model wrote; None if it wrote nothing.
        output: The final output; None without one.
        all_texts: The text of every attempt, if the structured output was requested more than once.
    """

    text: str | None
    output: Any = None
    all_texts: str | None = None


class ReplyRecorder(Middleware):
    """Stores the model's last response in the run's state, because the SDK's errors do not contain it."""

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Call the model and store its response."""
        response = await call_next(call)
        call.run.state[ReplyRecorder] = response
        return response


def reply_of(result: Any) -> Reply:
    """Return the reply in a run's result. The result may be a plain value that a middleware returned."""
    output = getattr(result, "final_output", result)
    text = ItemHelpers.text_message_outputs(getattr(result, "new_items", None) or [])
    if not text and output is not None:
        text = output if isinstance(output, str) else str(as_dict(output, json=True) or output)
    return Reply(text or None, output)


def unusable_reply(error: Exception) -> Reply | None:
    """Return the reply that the SDK rejected; None if the error has another cause.

    Only an unusable reply is a reason to continue with the next stage. A lost connection, an exhausted budget
    or a deadline would affect that stage as well.
    """
    if isinstance(error, (ModelBehaviorError, ModelRefusalError, MaxTurnsExceeded)):
        pass
    elif code_of(error) != _UNREADABLE:
        return None
    text = getattr(error, "text", None)
    if not isinstance(text, str):
        run = getattr(error, "kantan_run", None)
        response = run.state.get(ReplyRecorder) if run is not None else None
        items = getattr(response, "output", None) or []
        text = "".join(ItemHelpers.extract_text(item) or "" for item in items)
    attempts = [getattr(attempt, "text", None) for attempt in getattr(error, "attempts", ())]
    return Reply(text or None, all_texts="\n".join(one for one in attempts if isinstance(one, str)) or None)
