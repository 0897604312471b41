"""Repaired files written back with as little changed as possible."""

from __future__ import annotations

import pytest

from kantan_agents.definitions import AgentDefinition
from kantan_agents.definitions.fix import mended
from kantan_agents.errors import AgentFileError

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

MENDED = """\
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
def test_only_what_is_not_valid_is_written_anew(newline: str, bom: str) -> None:
    assert mended(bom + BROKEN.replace("\n", newline)) == bom + MENDED.replace("\n", newline)


def test_a_mended_file_says_the_same() -> None:
    assert AgentDefinition.loads(MENDED) == AgentDefinition.loads(BROKEN)
    assert not AgentDefinition.loads(MENDED).is_repaired


def test_a_file_that_needs_nothing_is_left_alone() -> None:
    assert mended(MENDED) is None


def test_a_colour_alone_is_put_in_quotes() -> None:
    text = "---\nname: a\ncolor:  #fff\ndescription: b\n---\n"

    assert mended(text) == text.replace("#fff", '"#fff"')


def test_the_closing_line_is_put_in() -> None:
    text = "---\nname: a\ndescription: b\n\nYou are a.\n"

    assert mended(text) == "---\nname: a\ndescription: b\n---\n\nYou are a.\n"
    assert mended("---\nname: a\ndescription: b") == "---\nname: a\ndescription: b\n---\n"


def test_a_line_that_belongs_to_no_field_becomes_a_comment() -> None:
    assert (
        mended("---\nhello\nname: a\ndescription: b\n---\n") == "---\n# hello\nname: a\ndescription: b\n---\n"
    )


def test_keys_keep_their_spelling() -> None:
    text = "---\nname: a\ndescription: b\nallowed-tools: [Read, Grep\nmodel_name: @quick\n---\n"

    assert mended(text) == text.replace("[Read, Grep", "Read, Grep").replace("@quick", '"@quick"')


def test_unknown_keys_are_mended_as_well() -> None:
    text = "---\nname: a\ndescription: b\nmodel: opus\nmodel_name: @quick\ntags: [x\n---\n"

    assert mended(text) == text.replace("@quick", '"@quick"').replace("[x", '"[x"')


def test_a_broken_value_that_does_not_count_is_mended_as_well() -> None:
    text = "---\nname: a\ndescription: b: c\ndescription: d\ntools: [Read, Grep\ntools: [Grep\n---\nP"

    result = mended(text)

    assert result == (
        "---\nname: a\n# description: b: c\ndescription: d\ntools: Grep\n# tools: [Grep\n---\nP"
    )
    assert AgentDefinition.loads(result) == AgentDefinition.loads(text)
    assert not AgentDefinition.loads(result).is_repaired


def test_of_two_broken_values_only_the_one_that_counts_is_written() -> None:
    text = "---\nname: a\ndescription: one: x\ndescription: two: y\n---\n"

    assert mended(text) == '---\nname: a\n# description: one: x\ndescription: "two: y"\n---\n'


def test_denials_of_two_broken_lists_are_all_kept() -> None:
    text = "---\nname: a\ndescription: b\ndisallowedTools: [Bash\ndeniedTools: [Write\n---\n"

    assert (
        mended(text)
        == "---\nname: a\ndescription: b\ndisallowedTools: Bash, Write\n# deniedTools: [Write\n---\n"
    )


def test_comments_in_what_is_written_anew_are_kept_above_it() -> None:
    text = (
        "---\nname: a\ndescription: b # c\n"
        "model: [x # cheap\ntools: [Read, # reads\n  # and\n  Grep # finds\n---\n"
    )

    assert mended(text) == (
        "---\nname: a\ndescription: b # c\n"
        '# cheap\nmodel: "[x"\n# reads\n# and\n# finds\ntools: Read, Grep\n---\n'
    )


@pytest.mark.parametrize(
    "lines",
    ["hooks:\n  Stop: x: y", "mcpServers: [a", "context:\n  style: short: x\n  b: c", "context: {a: [}"],
)
def test_data_that_is_broken_inside_is_not_written_anew(lines: str) -> None:
    text = f"---\nname: a\ndescription: b: c\n{lines}\n---\n"

    assert mended(text) is None
    assert AgentDefinition.loads(text).repairs[-1].message.endswith("; kept as text")


def test_a_context_of_words_is_put_in_quotes() -> None:
    text = "---\nname: a\ndescription: b\ncontext: use: this\n---\n"

    assert mended(text) == '---\nname: a\ndescription: b\ncontext: "use: this"\n---\n'


def test_a_comment_stays_one_whatever_line_ends_it_holds() -> None:
    text = "---\nname: a\ndescription: b: c\u2028d\ndescription: e\n---\n"

    assert mended(text) == "---\nname: a\n# description: b: c d\ndescription: e\n---\n"


def test_a_file_whose_fields_are_valid_one_by_one_is_written_anew() -> None:
    text = "---\nname: a\n...\ndescription: b\n---\n\nP"

    assert mended(text) == "---\nname: a\ndescription: b\n---\n\nP"


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(AgentFileError):
        mended("no frontmatter")
