"""Hypothesis strategies for values that every translation is tested with."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.models.protocol import Message, ProviderToolCall, ToolSpec
from kantan_agents.testing.strategies import json_values

NAMES = st.from_regex(r"[a-z_][a-zA-Z0-9_]{0,12}", fullmatch=True)
WILD_NAMES = NAMES | st.text(min_size=1, max_size=6, alphabet=st.characters(codec="utf-8"))
IDS = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
TEXTS = st.text(max_size=12, alphabet=st.characters(codec="utf-8"))
SAID = st.text(min_size=1, max_size=12, alphabet=st.characters(codec="utf-8"))
OBJECTS = st.dictionaries(TEXTS, json_values(max_leaves=3), max_size=3)
BASE64 = st.binary(min_size=1, max_size=9).map(lambda data: base64.b64encode(data).decode())
FOREIGN: st.SearchStrategy[dict[str, Any]] = (
    st.just({}) | st.builds(lambda x: {"confidence": x}, st.integers()) | st.just({"anthropic": {"odd": 1}})
)


def text_segments(texts: st.SearchStrategy[str] = SAID) -> st.SearchStrategy[ContentSegment]:
    return st.builds(ContentSegment.of_text, texts)


def calls(args: st.SearchStrategy[Any] = OBJECTS) -> st.SearchStrategy[ContentSegment]:
    return st.builds(ContentSegment.of_call, NAMES, args, IDS)


def images() -> st.SearchStrategy[ContentSegment]:
    made = st.builds(
        lambda data, mime: ContentSegment("image", data=data, mime_type=mime),
        BASE64,
        st.sampled_from(["image/png", "image/jpeg"]),
    )
    return made | st.just(ContentSegment("image", data="https://example.com/a.png"))


def documents() -> st.SearchStrategy[ContentSegment]:
    return st.builds(lambda data: ContentSegment("file", data=data, mime_type="application/pdf"), BASE64)


def any_segments(*, calling: bool = True) -> st.SearchStrategy[ContentSegment]:
    media = st.builds(
        lambda kind, data, mime: ContentSegment(kind, data=data, mime_type=mime),
        st.sampled_from(["image", "audio", "video", "file"]),
        BASE64 | st.sampled_from(["https://example.com/a.mp4", "data:image/png;base64,AAAA"]),
        st.sampled_from([None, "image/png", "audio/mp3", "audio/wav", "video/mp4", "application/pdf"]),
    )
    files = st.builds(
        lambda data, mime, extra: ContentSegment("file", data=data, mime_type=mime, extra=extra),
        BASE64 | st.just("https://example.com/a.pdf"),
        st.sampled_from([None, "application/pdf", "text/plain", "text/csv"]),
        FOREIGN | st.builds(lambda name: {"filename": name}, SAID),
    )
    odd = st.builds(
        lambda text, extra: ContentSegment("text", text=text, extra=extra),
        TEXTS,
        FOREIGN,
    )
    wild = st.builds(
        lambda name, args, call_id, extra: ContentSegment(
            "tool_call", tool_call=ProviderToolCall(name, args, call_id, extra=extra)
        ),
        WILD_NAMES,
        json_values(max_leaves=3),
        SAID,
        FOREIGN,
    )
    ui = st.builds(lambda value: ContentSegment("ui", ui=value), OBJECTS)
    found = text_segments(TEXTS) | images() | media | files | odd | ui
    return found | calls() | wild if calling else found


METADATA = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "id": SAID,
        "model": SAID,
        "finish_reason": SAID,
        "usage": st.fixed_dictionaries(
            {"input_tokens": st.integers(200, 400), "output_tokens": st.integers(200, 400)},
            optional={"cached_tokens": st.integers(0, 90)},
        ),
    },
).map(lambda said: said or None)


def responses() -> st.SearchStrategy[ProviderResponse]:
    return st.builds(
        ProviderResponse,
        st.lists(any_segments(), max_size=4).map(tuple),
        METADATA | json_values(max_leaves=3),
    )


def messages() -> st.SearchStrategy[Message]:
    said = st.lists(any_segments(calling=False), max_size=3)
    whole = st.lists(any_segments(), max_size=3)
    return (
        st.builds(
            lambda role, segments: Message(role, tuple(segments)), st.sampled_from(["user", "system"]), said
        )
        | st.builds(lambda segments: Message("assistant", tuple(segments)), whole)
        | st.builds(lambda segments, call_id: Message("tool", tuple(segments), call_id), said, SAID)
        | st.builds(
            lambda segments, call_id, name: Message("tool", tuple(segments), call_id, name),
            said,
            SAID,
            WILD_NAMES,
        )
    )


@st.composite
def conversations(draw: Any) -> tuple[Message, ...]:
    """Draw a conversation that every format can hold: calls have results, media come from the user."""
    found: list[Message] = []
    if draw(st.booleans()):
        found.append(Message("system", (draw(text_segments()),)))
    for _ in range(draw(st.integers(1, 3))):
        said = draw(st.lists(text_segments() | images() | documents(), min_size=1, max_size=3))
        found.append(Message("user", tuple(said)))
        made = draw(st.lists(calls(), max_size=3, unique_by=_call_id))
        used_ids = {call.id for message in found for call in _calls(message)}
        made = [segment for segment in made if segment.tool_call and segment.tool_call.id not in used_ids]
        spoken = draw(st.lists(text_segments(), min_size=0 if made else 1, max_size=1))
        found.append(Message("assistant", (*spoken, *made)))
        for call in _calls(found[-1]):
            results = draw(st.lists(text_segments(), min_size=1, max_size=2))
            found.append(Message("tool", tuple(results), call.id, call.name))
    return tuple(found)


def _call_id(segment: ContentSegment) -> str:
    return "" if segment.tool_call is None else segment.tool_call.id


def _calls(message: Message) -> list[ProviderToolCall]:
    return [segment.tool_call for segment in message.segments if segment.tool_call is not None]


def tools() -> st.SearchStrategy[ToolSpec]:
    schemas = st.builds(
        lambda names: {"type": "object", "properties": {name: {"type": "string"} for name in names}},
        st.lists(NAMES, max_size=3),
    )
    return st.builds(ToolSpec, NAMES, TEXTS, schemas)
