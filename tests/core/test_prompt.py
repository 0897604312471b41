from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Prompt
from kantan_agents.errors import EmptyPromptNameError, EmptyPromptTextError

names = st.text(min_size=1).filter(str.strip)


def test_spec_3_1_the_id_of_the_prompt_is_used() -> None:
    assert Prompt("n", "v1", "text", id="registry-7").resolve_id() == "registry-7"


@given(names)
def test_spec_3_2_the_default_id_is_the_sha256_of_the_text(text: Any) -> None:
    expected = hashlib.sha256(text.encode("utf-8")).hexdigest()
    assert Prompt("n", "v1", text).resolve_id() == expected


@given(names, names, names, names)
def test_the_id_depends_on_the_text_alone(name: Any, version: Any, other: Any, text: Any) -> None:
    assert Prompt(name, version, text).resolve_id() == Prompt(other, other, text).resolve_id()


@pytest.mark.parametrize("text", ["", "  \n", None, 3])
def test_spec_7_2_an_empty_text_is_e2(text: Any) -> None:
    with pytest.raises(EmptyPromptTextError):
        Prompt("n", "v1", text)


@pytest.mark.parametrize(("name", "version"), [("", "v1"), ("n", ""), (" ", "v1"), ("n", None), (1, "v")])
def test_spec_7_3_an_empty_name_or_version_is_e3(name: Any, version: Any) -> None:
    with pytest.raises(EmptyPromptNameError):
        Prompt(name, version, "text")


def test_a_prompt_is_frozen_and_hashable() -> None:
    prompt = Prompt("n", "v1", "text", meta={"a": 1})
    with pytest.raises(AttributeError):
        prompt.text = "other"
    assert hash(prompt) == hash(Prompt("n", "v1", "text", meta={"a": 2}))
    assert prompt != Prompt("n", "v1", "text", meta={"a": 2})
