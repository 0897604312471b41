"""Names and descriptions that an unquoted ``#`` cuts off."""

from __future__ import annotations

import pytest

from kantan_agents import AgentDefinition


@pytest.mark.parametrize("key", ["name", "description"])
def test_a_text_truncated_at_a_number_sign_gives_a_warning(key: str) -> None:
    lines = {"name": "a", "description": "b", key: "Fix issue #12: now"}
    read = AgentDefinition.loads("\n".join(["---", *(f"{k}: {v}" for k, v in lines.items()), "---", ""]))

    assert getattr(read, key) == "Fix issue"
    assert [(note.line, note.is_repair) for note in read.notes] == [(2 + list(lines).index(key), False)]
    assert f"{key}: the text ends before '#'" in read.notes[0].message


@pytest.mark.parametrize(
    "written",
    ["Fix issue # 12", "Fix C# now", '"Fix issue #12"', "|\n  Fix issue #12", "Fix\n  # it\nx: #12"],
)
def test_a_real_comment_gives_no_warning(written: str) -> None:
    assert AgentDefinition.loads(f"---\nname: a\ndescription: {written}\n---\n").notes == ()
