"""Invalid files are rewritten as valid YAML with as few changes as possible."""

from __future__ import annotations

import pytest

from kantan_agents import AgentDefinition
from kantan_agents.errors import AgentFileError
from kantan_agents.subagent_files.fix import fixed_text

BROKEN = """\
---
# who
name: a
description: Use it: now.

# what
tools: *
author:   me  # kept
model: 'opus'
color: #ff0000
---

# Prompt: kept  \n\t
---
"""

FIXED = """\
---
# who
name: a
description: "Use it: now."

# what
tools: "*"
author:   me  # kept
model: 'opus'
color: "#ff0000"
---

# Prompt: kept  \n\t
---
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_only_invalid_fields_are_rewritten(newline: str, bom: str) -> None:
    assert fixed_text(bom + BROKEN.replace("\n", newline)) == bom + FIXED.replace("\n", newline)


def test_a_fixed_file_has_the_same_content() -> None:
    assert AgentDefinition.loads(FIXED) == AgentDefinition.loads(BROKEN)
    assert not AgentDefinition.loads(FIXED).is_repaired


def test_a_valid_file_is_not_changed() -> None:
    assert fixed_text(FIXED) is None


def test_an_unquoted_colour_is_quoted() -> None:
    text = "---\nname: a\ncolor:  #fff\ndescription: b\n---\n"

    assert fixed_text(text) == text.replace("#fff", '"#fff"')


def test_a_missing_closing_line_is_added() -> None:
    text = "---\nname: a\ndescription: b\n\nYou are a.\n"

    assert fixed_text(text) == "---\nname: a\ndescription: b\n---\n\nYou are a.\n"
    assert fixed_text("---\nname: a\ndescription: b") == "---\nname: a\ndescription: b\n---\n"


def test_a_line_that_belongs_to_no_field_becomes_a_comment() -> None:
    text = "---\nhello\nname: a\ndescription: b\n---\n"
    assert fixed_text(text) == "---\n# hello\nname: a\ndescription: b\n---\n"


def test_keys_keep_their_spelling() -> None:
    text = "---\nname: a\ndescription: b\nallowed-tools: [Read, Grep\nmodel_name: @quick\n---\n"

    assert fixed_text(text) == text.replace("[Read, Grep", "Read, Grep").replace("@quick", '"@quick"')


def test_unknown_keys_are_fixed_as_well() -> None:
    text = "---\nname: a\ndescription: b\nmodel: opus\nmodel_name: @quick\ntags: [x\n---\n"

    assert fixed_text(text) == text.replace("@quick", '"@quick"').replace("[x", '"[x"')


def test_an_invalid_value_that_is_not_used_is_fixed_as_well() -> None:
    text = "---\nname: a\ndescription: b: c\ndescription: d\ntools: [Read, Grep\ntools: [Grep\n---\nP"

    result = fixed_text(text)

    assert result == (
        "---\nname: a\n# description: b: c\ndescription: d\ntools: Grep\n# tools: [Grep\n---\nP"
    )
    assert AgentDefinition.loads(result) == AgentDefinition.loads(text)
    assert not AgentDefinition.loads(result).is_repaired


def test_of_two_invalid_values_only_the_one_used_is_written() -> None:
    text = "---\nname: a\ndescription: one: x\ndescription: two: y\n---\n"

    assert fixed_text(text) == '---\nname: a\n# description: one: x\ndescription: "two: y"\n---\n'


def test_all_denials_of_two_invalid_lists_are_kept() -> None:
    text = "---\nname: a\ndescription: b\ndisallowedTools: [Bash\ndeniedTools: [Write\n---\n"

    assert (
        fixed_text(text)
        == "---\nname: a\ndescription: b\ndisallowedTools: Bash, Write\n# deniedTools: [Write\n---\n"
    )


def test_comments_in_a_rewritten_field_move_above_it() -> None:
    text = (
        "---\nname: a\ndescription: b # c\n"
        "model: [x # cheap\ntools: [Read, # reads\n  # and\n  Grep # finds\n---\n"
    )

    assert fixed_text(text) == (
        "---\nname: a\ndescription: b # c\n"
        "# cheap\nmodel: x\n# reads\n# and\n# finds\ntools: Read, Grep\n---\n"
    )


@pytest.mark.parametrize(
    "lines",
    ["hooks:\n  Stop: x: y", "mcpServers: [a", "context:\n  style: short: x\n  b: c", "context: {a: [}"],
)
def test_a_data_field_with_invalid_content_is_not_rewritten(lines: str) -> None:
    text = f"---\nname: a\ndescription: b: c\n{lines}\n---\n"

    assert fixed_text(text) is None
    assert AgentDefinition.loads(text).repairs[-1].message.endswith("; kept as text")


def test_a_context_that_is_text_is_quoted() -> None:
    text = "---\nname: a\ndescription: b\ncontext: use: this\n---\n"

    assert fixed_text(text) == '---\nname: a\ndescription: b\ncontext: "use: this"\n---\n'


def test_a_comment_with_unusual_line_ends_stays_one_comment() -> None:
    text = "---\nname: a\ndescription: b: c\u2028d\ndescription: e\n---\n"

    assert fixed_text(text) == "---\nname: a\n# description: b: c d\ndescription: e\n---\n"


def test_a_file_with_individually_valid_fields_is_rewritten_as_a_whole() -> None:
    text = "---\nname: a\n...\ndescription: b\n---\n\nP"

    assert fixed_text(text) == "---\nname: a\ndescription: b\n---\n\nP"


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(AgentFileError):
        fixed_text("no frontmatter")
