"""Models with unusual streams."""

from __future__ import annotations

from typing import Any

from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent

from kantan_agents.testing import ScriptedModel


class SaysItInItems(ScriptedModel):
    """Streams its items first and ends with an empty response."""

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        async for event in super().stream_response(*args, **kwargs):
            if not isinstance(event, ResponseCompletedEvent):
                yield event
                continue
            for place, item in enumerate(event.response.output):
                yield ResponseOutputItemDoneEvent(
                    type="response.output_item.done", item=item, output_index=place, sequence_number=9
                )
            empty: Response = event.response.model_copy(update={"output": []})
            yield event.model_copy(update={"response": empty})
