"""The standard keys of trace metadata."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Prompt
from kantan_agents.traces.metadata import finite, flatten_meta, prompt_metadata, run_metadata

STANDARD = {"agent_name", "prompt_name", "prompt_version", "prompt_id", "agent_run_id"}
scalars = st.one_of(st.text(), st.integers(), st.booleans(), st.floats())
others = st.one_of(st.none(), st.lists(st.integers()), st.dictionaries(st.text(), st.text()), st.binary())


@given(st.dictionaries(st.text(), st.one_of(scalars, others)))
def test_spec_2_8_only_scalars_are_included_and_a_bool_stays_a_bool(meta: Any) -> None:
    flat = flatten_meta(meta)
    for key, value in meta.items():
        name = f"prompt_meta_{key}"
        finite = not isinstance(value, float) or math.isfinite(value)
        if isinstance(value, (str, int, float)) and finite:
            assert flat[name] is value
        else:
            assert name not in flat
    assert len(flat) <= len(meta)


@given(st.dictionaries(st.text(), scalars))
def test_no_key_of_prompt_meta_collides_with_a_standard_key(meta: Any) -> None:
    prompt = Prompt("p", "v1", "text", meta=meta)
    assert not STANDARD & set(flatten_meta(meta))
    metadata = run_metadata({}, prompt_metadata("a", prompt), "r")
    assert {key: metadata[key] for key in STANDARD} == {
        "agent_name": "a",
        "prompt_name": "p",
        "prompt_version": "v1",
        "prompt_id": prompt.resolve_id(),
        "agent_run_id": "r",
    }


@given(st.dictionaries(st.one_of(st.sampled_from(sorted(STANDARD)), st.text()), scalars))
def test_user_metadata_never_overrides_a_standard_key(user: Any) -> None:
    standard = prompt_metadata("a", Prompt("p", "v1", "text"))
    merged = run_metadata(user, standard, "r")
    for key, value in {**standard, "agent_run_id": "r"}.items():
        assert merged[key] == value
    for key in set(user) - STANDARD:
        assert merged[key] is user[key]


def test_a_value_inside_itself_and_endless_nesting_have_an_end() -> None:
    inside: list[Any] = [1, math.nan]
    inside.append({"again": inside})
    assert finite({"v": inside, "w": (2, [3], [3])}) == {"v": [1, None, {"again": "..."}], "w": [2, [3], [3]]}
    deep: Any = []
    for _ in range(10_000):
        deep = {"k": deep}
    assert json.dumps(finite(deep)).count("k") == 200


def test_spec_2_4_plain_instructions_give_name_prompt_name_and_id_only() -> None:
    assert set(prompt_metadata("a", "text")) == {"agent_name", "prompt_name", "prompt_id"}
    assert prompt_metadata("a", "text")["prompt_name"] == "a"


def test_without_meta_there_are_no_meta_keys() -> None:
    assert flatten_meta(None) == {}
