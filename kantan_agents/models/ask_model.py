"""Sends all requests to models, and fits requests and answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from agents import Model, ModelResponse

from kantan_agents.core.items import NAMED_CALLS, get
from kantan_agents.models.call_ids import UniqueIds, ids_in, is_made, with_servers_ids
from kantan_agents.models.finish_reasons import mark_streamed
from kantan_agents.models.model_wrapper import ModelWrapper
from kantan_agents.models.tool_names import SentNames, are_accepted, is_accepted_call
from kantan_agents.models.whole_text import (
    WholeDeltas,
    are_known_whole,
    have_texts,
    is_whole,
    marked_arguments,
    sent_arguments,
    whole_answer,
    whole_parts,
    whole_request,
    whole_settings,
)

PARAMETERS: Final = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
)
"""Positional arguments of the SDK's ``stream_response``."""
_ITEMS: Final = ("response.output_item.added", "response.output_item.done")
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


async def ask_model(model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModelResponse:
    """Call a model with the arguments of ``get_response``.

    Wrappers pass everything unchanged: the wrapped model comes here too.
    """
    if isinstance(model, ModelWrapper):
        return await model.get_response(*args, **kwargs)
    if args or not _fits(kwargs):
        exchange = _Exchange(model, args, kwargs)
        answer = await model.get_response(**exchange.request)
        answer.output = exchange.output(answer.output)
        return answer
    answer = await model.get_response(**kwargs)
    output = answer.output
    if not is_whole(output, marked_arguments):
        output = answer.output = whole_answer(output)
    for item in output:
        if getattr(item, "type", None) != "message":
            answer.output = UniqueIds(model, ids_in(kwargs["input"])).items(output)
            break
    return answer


def _fits(given: Mapping[str, Any]) -> bool:
    """Return whether a request can be sent unchanged, the usual case."""
    instructions, items, tools = given["system_instructions"], given["input"], given["tools"]
    schema = given.get("output_schema")
    return not (
        given.get("handoffs")
        or given.get("prompt") is not None
        or (tools and not (are_accepted(tools) and are_known_whole(tools)))
        or (schema is not None and not are_known_whole((schema,)))
        or have_texts(given["model_settings"])
        or not (isinstance(items, str) or all(map(_is_sent_as_it_is, items)))
    ) and is_whole((instructions, items), sent_arguments)


def _is_sent_as_it_is(item: Any) -> bool:
    if type(item) is not dict:
        return False
    call_id = item.get("call_id")
    if call_id is None and "name" not in item:  # most are messages
        return True
    return (call_id is None or not is_made(call_id)) and is_accepted_call(item)


def stream_model(model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> AsyncIterator[Any]:
    """Like ``ask_model``, for ``stream_response``."""
    if isinstance(model, ModelWrapper):
        return model.stream_response(*args, **kwargs)
    return _events(model, args, kwargs)


async def _events(
    model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> AsyncGenerator[Any, None]:
    exchange = _Exchange(model, args, kwargs)
    deltas = WholeDeltas()
    given = dict(exchange.request)
    in_order = [given.pop(name) for name in PARAMETERS if name in given]
    source: Any = model.stream_response(*in_order, **given)
    if not hasattr(source, "aclose"):
        source = _closable(source)
    async with aclosing(source) as events:
        async for event in events:
            if type(getattr(event, "delta", None)) is str:
                ready = deltas.feed(event)
                if ready is not None:
                    yield ready
                continue
            for rest in deltas.rest():
                yield rest
            yield exchange.event(event)


class _Exchange:
    """One request, as arguments by name, and its answer."""

    def __init__(self, model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        given = {**dict(zip(PARAMETERS, args, strict=False)), **kwargs}
        items, tools, handoffs = given["input"], given["tools"], given.get("handoffs") or ()
        ids = ids_in(items)
        self._ids = UniqueIds(model, ids)
        names = SentNames(tools, handoffs)
        self._own = partial(_own_of_handoff, names, handoffs) if handoffs else names.own
        if ids:  # earlier calls
            items = names.items(with_servers_ids(items, ids, model))
        instructions, items = whole_request((given["system_instructions"], items))
        self.request = {
            **given,
            "system_instructions": instructions,
            "input": items,
            "model_settings": whole_settings(names.settings(given["model_settings"])),
            "tools": whole_parts(names.tools(tools)) if tools else tools,
        }
        if handoffs:
            self.request["handoffs"] = whole_parts(names.handoffs(handoffs))
        if given.get("output_schema") is not None:
            (self.request["output_schema"],) = whole_parts([given["output_schema"]])
        if given.get("prompt") is not None:
            self.request["prompt"] = whole_request(given["prompt"])

    def output(self, items: list[Any]) -> list[Any]:
        made = whole_answer(items)
        return self._ids.items([self._own(item) for item in made])

    def event(self, event: Any) -> Any:
        kind = getattr(event, "type", "")
        if kind in _ITEMS:
            item = self._own(whole_answer(event.item))
            item = self._ids.streamed_item(item, is_complete=kind == _ITEMS[1])
            return event if item is event.item else event.model_copy(update={"item": item})
        if kind in _ENDS:
            response = event.response
            mark_streamed(response)
            output = self.output(response.output)
            if all(one is other for one, other in zip(output, response.output, strict=True)):
                return event
            return event.model_copy(update={"response": response.model_copy(update={"output": output})})
        return whole_answer(event) if kind.endswith(".done") else event


def _own_of_handoff(names: SentNames, handoffs: Sequence[Any], item: Any) -> Any:
    """Restore an answer's item; U+FFFD replaces half characters in a handoff's input.

    The SDK fails on input that is not JSON, and no tool rule needs the original.
    """
    item = names.own(item)
    if get(item, "type") not in NAMED_CALLS or all(get(item, "name") != one.tool_name for one in handoffs):
        return item
    return whole_request(item)


async def _closable(events: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    async for event in events:
        yield event
