"""Responses in the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.metadata import ResponseMetadata
from kantan_agents.models.protocol.translate.openai_responses.assistant_items import AssistantItems
from kantan_agents.models.protocol.translate.openai_responses.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.openai_responses.wire_items import wire_items
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.translate.usage import read_usage, write_usage
from kantan_agents.models.protocol.types import ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "total_tokens": ("total_tokens",),
    "cached_tokens": ("input_tokens_details", "cached_tokens"),
    "reasoning_tokens": ("output_tokens_details", "reasoning_tokens"),
}
_TEXTS: Mapping[str, str] = {"id": "id", "model": "model", "finish_reason": "status"}


def response_from_openai_responses(data: Any) -> ProviderResponse:
    """Return a response object of the API as a ``ProviderResponse``.

    ``metadata`` has ``id``, ``model``, ``finish_reason`` (the API's ``status``) and ``usage``; all other
    fields are in ``extra["openai_responses"]``.

    Raises:
        UntranslatableError: E52, it has output items for which the protocol has no segment.
        InvalidProtocolValueError: E50, it is not a response object.
    """
    reader = WireReader("response of OpenAI Responses", OWNER)
    response = reader.expect_answer(data, "output")
    if not response["output"] and response.get("object") != "response":
        reader.add("object", f"must be response, not {response.get('object')!r}"[:200])
    reader.check()
    losses = Losses(FORMAT, OWNER)
    assistant = AssistantItems(losses, keep_unknown=True)
    for index, item in enumerate(response["output"]):
        path = f"output[{index}]"
        if not isinstance(item, Mapping):
            losses.add(path, f"must be an object, not {type(item).__name__}")
        elif assistant.add(item, path) is None:
            losses.add(path, f"an item of the type {item.get('type')!r}")
    losses.check()
    segments, blocks = assistant.take()
    texts = {name: response[wire] for name, wire in _TEXTS.items() if isinstance(response.get(wire), str)}
    usage = response.get("usage")
    counts, rest = read_usage(usage, USAGE) if isinstance(usage, Mapping) else ({}, {})
    read = {"output", *(_TEXTS[name] for name in texts), *(("usage",) if isinstance(usage, Mapping) else ())}
    fields = unknown_fields(response, *read)
    if fields.get("object") == "response":
        del fields["object"]
    extra = {name: part for name, part in (("fields", fields), ("usage", rest), ("before", blocks)) if part}
    metadata = ResponseMetadata(**texts, usage=counts).to_dict()
    return ProviderResponse(segments, metadata, extra={OWNER: extra} if extra else {})


def response_to_openai_responses(response: ProviderResponse) -> dict[str, Any]:
    """Return a ``ProviderResponse`` as a response object of the API.

    Raises:
        UntranslatableError: E52, with everything that would be lost: media and ``ui``, unknown fields.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.format_extra(response.extra, "", "fields", "usage", "before")
    metadata = ResponseMetadata.of(response.metadata, losses)
    body: dict[str, Any] = {"object": "response", **metadata.fields(**_TEXTS)}
    body["output"] = [*losses.blocks(own, "before", ""), *wire_items(response.segments, losses, "")]
    usage = write_usage(metadata.usage, own.get("usage", {}), USAGE, losses, f"extra.{OWNER}.usage")
    if usage:
        body["usage"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body
