"""Lists of tools never allow more and never deny less than their author wrote."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import AgentDefinition
from kantan_agents.errors import InvalidDefinitionError
from kantan_agents.subagent_files.tool_list_errors import denied_entry_error
from kantan_agents.subagent_files.tool_lists import split_denied


def loads(*lines: str, close: str = "---\n\nP\n") -> AgentDefinition:
    return AgentDefinition.loads("\n".join(["---", "name: a", *lines, close]))


def refused(*lines: str, close: str = "---\n\nP\n") -> InvalidDefinitionError:
    with pytest.raises(InvalidDefinitionError) as raised:
        loads(*lines, close=close)
    return raised.value


class TestAllExceptSome:
    @pytest.mark.parametrize(
        "written",
        [
            "'* except Bash'",
            "* except Bash",
            "* -Bash",
            "*, Read",
            "- *\n- Read",
            "\n  * except Bash",
            "all, except Bash",
            "all except Bash",
            "All tools except Bash",
            "All tools, except Bash",
            "[all except Bash]",
            "[all except Bash",
            "all (no Bash)",
            '"*, !Bash"',
            "['*', '-Bash']",
            "[Read, all]",
            "Read, '*'",
            "[mcp__x__*, -mcp__x__delete]",
            "['!Bash']",
            "mcp__x__* except mcp__x__delete",
            "Read Bash but not Write",
            "no Bash",
            "[Read, without Bash]",
        ],
    )
    def test_all_tools_except_some_does_not_mean_all_tools(self, written: str) -> None:
        error = refused("description: b", f"tools: {written}")
        assert error.line == 4
        assert error.problems[0].startswith("tools: ")

    def test_the_word_for_all_in_two_lists_is_not_a_common_entry(self) -> None:
        assert refused("description: b", "tools: [Read, '*']", "allowedTools: ['*', Bash]").line == 4

    @pytest.mark.parametrize(
        "written", ["'*'", "*", "all", "ALL", "All tools", "[all tools]", "\n  * all", "- *"]
    )
    def test_the_word_alone_means_all_tools(self, written: str) -> None:
        assert loads("description: b", f"tools: {written}").tools == "*"

    @pytest.mark.parametrize("written", ["none", "no", "false", "[]", ""])
    def test_an_empty_list_means_no_tools(self, written: str) -> None:
        assert "Bash" not in loads("description: b", f"tools: {written}").tools


class TestSeparators:
    @pytest.mark.parametrize("comma", [",", "\uff0c", "\u3001", "\uff64", " \u3001 ", "\u3001\u3000"])
    @pytest.mark.parametrize("field", ["tools", "disallowedTools"])
    @pytest.mark.parametrize("listed", ["{}", "[{}]", '"{}"', "\n  - {}"])
    def test_the_commas_of_other_scripts_separate_too(self, comma: str, field: str, listed: str) -> None:
        names = ("Read", "Bash(a\u3001b)", "Write") if field == "tools" else ("Read", "Write")
        definition = loads("description: b", f"{field}: {listed.format(comma.join(names))}")
        assert (definition.tools if field == "tools" else definition.disallowed_tools) == names


class TestDenials:
    @pytest.mark.parametrize(
        "written",
        [
            "[Bash Write]",
            "Bash Write",
            "Bash; Write;",
            "Bash\uff0cWrite",
            "\u201cBash\u201d, \u201cWrite\u201d",
            "`Bash`, `Write`",
            "{Bash, Write",
            "[Bash, Write",
            "'[Bash, Write]'",
            '"Bash, Write',
            "|\n  Bash\n  Write",
            "|\n  - Bash\n  - Write",
            "\n  * Bash\n  * Write",
            "\n* Bash\n* Write",
            "\n  \u2022 Bash\n  \u2022 Write",
            "\n  - \"Bash\n  - 'Write'",
            "\n  - Bash # why\n  # and\n  - Write\n  - [",
        ],
    )
    def test_every_name_is_denied(self, written: str) -> None:
        assert loads("description: b", f"disallowedTools: {written}").disallowed_tools == ("Bash", "Write")

    @pytest.mark.parametrize(
        "first", ["Bash", "mcp__[ab]*", "mcp__x__*", "a.b/c:d", "B\u00e4sh", "?ash", "Bash(rm:*)"]
    )
    def test_characters_that_belong_to_a_name_are_kept(self, first: str) -> None:
        for written in (f"Edit, {first}", f"[Edit, '{first}']", f"[Edit, {first}"):
            assert loads("description: b", f"disallowedTools: {written}").disallowed_tools == ("Edit", first)

    @pytest.mark.parametrize(
        "written",
        [
            "Bash(rm -rf:*, Write, Edit",
            "[Bash(rm, Write]",
            "Bash(a)Write(b)",
            "Bash (rm:*)",
            "{Bash: true, Write: true}",
            "{Bash: true, Write: true",
            "\n  Bash: true\n  Write: x: y",
            "{Bash:true, Write",
            "Bash | Write",
            "[Bash, @x]",
            "Bash = no",
            "Bash, except",
            "'!Bash'",
            "-Bash",
            "Bash, Write.",
            "Bash(echo #1), Write",
        ],
    )
    def test_an_entry_that_would_deny_nothing_is_refused(self, written: str) -> None:
        error = refused("description: b", f"disallowedTools: {written}")
        assert error.line == 4
        assert error.problems[0].startswith("disallowedTools: ")

    def test_the_line_is_that_of_the_wrong_list(self) -> None:
        assert refused("description: b", "deniedTools: 'Bash('", "disallowedTools: Write").line == 4

    @pytest.mark.parametrize(
        "written", ["*", "* Read", "'*'", "all", "[all, Read]", "- *", "['*', Bash]", "* except Read"]
    )
    def test_a_denial_of_all_tools_denies_everything(self, written: str) -> None:
        assert loads("description: b", f"disallowedTools: {written}").disallowed_tools == ("*",)

    @given(st.text(string.ascii_letters + "_-.*?()[]/:,;{}'`\" \n", max_size=12))
    def test_splitting_again_changes_nothing(self, text: str) -> None:
        names = split_denied([text])
        if not any(map(denied_entry_error, names)):
            assert split_denied(names) == names
            assert split_denied([", ".join(names)]) == names
