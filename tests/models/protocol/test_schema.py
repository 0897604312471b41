"""The published schema accepts the same data as the values, as far as a JSON Schema can express it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.models.protocol import Message, ProviderToolCall, ToolSpec, protocol_schema
from kantan_agents.testing.strategies import json_values
from tests.docs.pages import ROOT
from tests.models.protocol.scripted import messages, responses, tools

KINDS: tuple[Any, ...] = (ProviderResponse, ContentSegment, ProviderToolCall, ToolSpec, Message)
SCHEMA = protocol_schema()
SCHEMA_NAMES = {ProviderToolCall: "ToolCall"}  # the specification's name for it
VALIDATORS = {
    kind: jsonschema_rs.validator_for({**SCHEMA, "$ref": f"#/$defs/{SCHEMA_NAMES.get(kind, kind.__name__)}"})
    for kind in KINDS
}

_PAYLOADS: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(["text", "image", "ui", "tool_call", "smell", None]),
    "text": st.sampled_from(["", "a", None, 1]),
    "data": st.sampled_from(["aGk=", "", None, 2, "a", "aGk=\n", "aG=k", "====", "x:", "1x:", "日本: a"]),
    "mimeType": st.sampled_from(["image/png", None, 3]),
    "ui": st.sampled_from([None, 0, {}]),
    "toolCall": st.sampled_from([None, {"name": "f"}, {"name": ""}, {"args": 1}, {"name": "f", "id": 1}]),
}
NEAR_SEGMENTS = st.fixed_dictionaries({}, optional=_PAYLOADS)
NEAR_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "tool", "system", 1]),
        "segments": st.lists(NEAR_SEGMENTS, max_size=2) | st.none(),
        "toolCallId": st.sampled_from([None, "1", 1]),
        "toolName": st.sampled_from([None, "f", 1]),
    },
)


def test_the_schema_is_valid_and_published_in_the_docs() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    published = (ROOT / "docs" / "protocol-schema.json").read_text(encoding="utf-8")
    assert published == json.dumps(SCHEMA, indent=2) + "\n"


@given(responses() | messages() | tools())
def test_every_value_is_valid_against_the_schema(value: Any) -> None:
    VALIDATORS[type(value)].validate(value.to_dict())


@given(NEAR_SEGMENTS | NEAR_MESSAGES | json_values())
def test_schema_and_values_reject_the_same_data(data: Any) -> None:
    for kind in KINDS:
        for candidate in (data, {"segments": [data]}):
            try:
                kind.from_dict(candidate)
            except InvalidProtocolValueError as error:
                problems = error.problems
            else:
                problems = ()
            # Only the values check that texts are valid Unicode.
            is_beyond_schema = any(end in problem for problem in problems for end in ("Unicode", "surrogate"))
            assert VALIDATORS[kind].is_valid(candidate) == (not problems) or is_beyond_schema, (
                kind,
                candidate,
                problems,
            )
