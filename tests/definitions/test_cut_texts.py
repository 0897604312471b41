"""Names and descriptions that a ``#`` ends sooner than they look."""

from __future__ import annotations

import pytest

from kantan_agents.definitions import AgentDefinition


@pytest.mark.parametrize("key", ["name", "description"])
def test_a_text_that_is_cut_at_a_number_sign_is_remarked(key: str) -> None:
    lines = {"name": "a", "description": "b", key: "Fix issue #12: now"}
    read = AgentDefinition.loads("\n".join(["---", *(f"{k}: {v}" for k, v in lines.items()), "---", ""]))

    assert getattr(read, key) == "Fix issue"
    assert [(note.line, note.is_repair) for note in read.notes] == [(2 + list(lines).index(key), False)]
    assert f"{key}: ends before '#'" in read.notes[0].message


@pytest.mark.parametrize(
    "written",
    ["Fix issue # 12", "Fix C# now", '"Fix issue #12"', "|\n  Fix issue #12", "Fix\n  # it\nx: #12"],
)
def test_a_comment_is_no_cut(written: str) -> None:
    assert AgentDefinition.loads(f"---\nname: a\ndescription: {written}\n---\n").notes == ()
