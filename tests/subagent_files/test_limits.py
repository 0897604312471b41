"""A limit on tools is applied or refused, but never lost, however the file spells it."""

from __future__ import annotations

import pytest

from kantan_agents import AgentDefinition
from kantan_agents.errors import InvalidDefinitionError


def loads(*lines: str, close: str = "---\n\nP\n") -> AgentDefinition:
    return AgentDefinition.loads("\n".join(["---", "name: a", *lines, close]))


def refused(*lines: str, close: str = "---\n\nP\n") -> InvalidDefinitionError:
    with pytest.raises(InvalidDefinitionError) as raised:
        loads(*lines, close=close)
    return raised.value


def warnings_in(definition: AgentDefinition) -> list[tuple[int, str]]:
    return [(note.line, note.message) for note in definition.notes if not note.is_repair]


SLIPS = [
    "  tools: Read",
    "\ttools: Read",
    "\u00a0tools: Read",
    "\u200btools: Read",
    "\ufefftools: Read",
    "- tools: Read",
    "**tools**: Read",
    "`tools`: Read",
    "> tools: Read",
    "tools = Read",
    "tools\uff1a Read",
    "\uff54\uff4f\uff4f\uff4c\uff53: Read",
    "to\u200bols: Read",
    "allowedTools Read",
    "? tools",
]


class TestLinesThatAreNotKeys:
    @pytest.mark.parametrize("slip", SLIPS)
    @pytest.mark.parametrize("above", ["description: Use: this", "description: b\nmodel: [x"])
    def test_a_line_that_looks_like_tools_is_refused(self, slip: str, above: str) -> None:
        error = refused(*above.split("\n"), slip)
        assert error.line == 4 + above.count("\n")
        assert "looks like tools" in error.problems[0]

    @pytest.mark.parametrize(
        "denial",
        [slip.replace("allowedTools", "deniedTools").replace("tools", "denied tools") for slip in SLIPS[:11]]
        + ["deniedTools Bash", "- disallowed-tools: Bash", "? 'disallowedTools'"],
    )
    def test_a_line_that_looks_like_a_denial_is_refused_even_with_a_tools_key(self, denial: str) -> None:
        error = refused("description: Use: this", denial, "tools: Read, Bash")
        assert error.line == 4
        assert "looks like disallowedTools" in error.problems[0]

    def test_such_a_line_before_any_field_is_refused(self) -> None:
        text = "---\n tools: Read\nname: a\ndescription: b\n---\n"
        with pytest.raises(InvalidDefinitionError, match=r"line 2: .*looks like tools"):
            AgentDefinition.loads(text)

    @pytest.mark.parametrize("separator", ["\x0b", "\x85", "\u2028"])
    def test_such_a_line_after_a_line_end_unknown_to_yaml_is_refused(self, separator: str) -> None:
        refused(f"description: a: b{separator}tools: Read")

    def test_such_a_line_inside_another_list_is_refused(self) -> None:
        refused("description: b", "tools: Read\n  disallowedTools: Bash", "x: y: z")

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("line", ["tools: Read", "Tools: Read", '"tools": Read', "tools = Read"])
    def test_such_a_line_inside_quotes_that_close_too_late_is_refused(self, newline: str, line: str) -> None:
        quoted = f"'Use this\n{line}\nmodel: x'" if '"' in line else f'"Use this\n{line}\nmodel: x"'
        with pytest.raises(InvalidDefinitionError, match=r"line 4: .*looks like tools"):
            AgentDefinition.loads(f"---\nname: a\ndescription: {quoted}\n---\n".replace("\n", newline))

    @pytest.mark.parametrize(
        "key", ['"tools"', "'tools'", "Tools", "TOOLS", "Allowed tools", "Allowed-Tools"]
    )
    def test_a_quoted_key_or_one_in_another_case_is_recognized(self, key: str) -> None:
        assert loads("description: Use: this", f"{key}: Read").tools == ("Read",)
        assert loads("description: Use: this", f"{key} :Read", "x: y").tools == ("Read",)

    def test_with_a_real_key_prose_may_mention_tools(self) -> None:
        read = loads("description: Use: this", "Tools: it has some", "  tools: some", "tools: Read")
        assert read.description == "Use: this\nTools: it has some\n  tools: some"
        assert read.tools == ("Read",)

    @pytest.mark.parametrize(
        "lines",
        [
            "description: |\n  tools: Read\n  more: of it",
            "description: b: c\nmcpServers:\n  one:\n    tools: [x]",
            "description: b: c\n# tools: Read",
            "description: Use: the tools: all of them",
        ],
    )
    def test_blocks_data_and_comments_may_mention_tools(self, lines: str) -> None:
        assert loads(*lines.split("\n"), "x: [y").tools == "*"


class TestWithoutAClosingLine:
    def test_tools_below_a_dialogue_belong_to_the_frontmatter(self) -> None:
        read = loads(
            "description: Use this. Examples", "", "user: hi", "assistant: ho", "", "tools: Read", "model: x",
            "", "You are",
            close="",
        )  # fmt: skip
        assert (read.tools, read.model, read.system_prompt) == (("Read",), "x", "You are\n")

    @pytest.mark.parametrize("line", ["--", "...", "\u2014\u2014", " ---", "***"])
    def test_a_line_meant_as_a_closing_line_ends_the_frontmatter(self, line: str) -> None:
        read = loads("description: b", "tools: Read", line, "", "You are", close="")
        assert (read.tools, read.system_prompt) == (("Read",), "You are\n")
        read = loads("description: b", "", "Examples.", "tools: Read", line, "You are", close="")
        assert (read.tools, read.system_prompt) == (("Read",), "You are\n")

    @pytest.mark.parametrize("slip", ["Tools: Read", '"tools": Read', "**tools**: Read", "tools = Read"])
    def test_a_line_of_the_prompt_that_looks_like_tools_is_refused(self, slip: str) -> None:
        error = refused("description: b", "", "You are.", slip, close="")
        assert error.line == 6

    @pytest.mark.parametrize("line", ["tools: Read", "Tools: Read", "disallowedTools: Bash"])
    def test_below_a_heading_such_a_line_is_refused(self, line: str) -> None:
        error = refused("description: b", "", "You are.", "", "# Tools", "", line, close="")
        assert error.line == 9
        assert "write the closing line '---'" in error.problems[0]

    def test_a_comment_directly_above_the_key_is_not_a_heading(self) -> None:
        read = loads(
            "description: b", "", "user: hi", "", "# the tools", "tools: Read", "", "You are", close=""
        )
        assert (read.tools, read.system_prompt) == (("Read",), "You are\n")

    def test_with_a_tools_key_the_prompt_may_mention_tools(self) -> None:
        read = loads("description: b", "tools: Read", "", "You are.", "tools: Read and more", close="")
        assert (read.tools, read.system_prompt) == (("Read",), "You are.\ntools: Read and more\n")
        assert (
            refused("description: b", "tools: Read", "", "You are.", "Disallowed tools: Bash", close="").line
            == 7
        )

    @pytest.mark.parametrize("key", ['"tools"', "Tools", "tools"])
    def test_with_a_rule_below_they_belong_to_the_frontmatter_as_well(self, key: str) -> None:
        read = loads("description: x", "model: sonnet", "", f"{key}: [Read]", "perm: a: b")
        assert (read.tools, read.model, read.system_prompt) == (("Read",), "sonnet", "P\n")

    def test_a_key_below_the_closing_line_gives_a_warning(self) -> None:
        read = loads("description: b", close="---\n\ntools: Read\n\nYou are")
        assert warnings_in(read) == [(4, "tools: is below the frontmatter, so it has no effect")]


class TestReferences:
    @pytest.mark.parametrize(
        ("lines", "line"),
        [
            ("base: &deny [Bash, Write]\ndisallowedTools: *deny", 4),
            ("base: &one Bash\ndisallowedTools: [Edit, *one]", 4),
            ("base: &t [Read]\ntools: *t", 4),
            ("base: &b {tools: Read}\n<<: *b", 4),
            ("model: x\n<<: {disallowedTools: Bash}", 4),
            ("model: x\n'a b': c\n<<: {disallowedTools: Bash}", 5),
            ("base: &d x\ninitialPrompt: *d", 4),
        ],
    )
    def test_references_in_an_invalid_file_are_refused(self, lines: str, line: int) -> None:
        error = refused(*lines.split("\n"), "description: x: y")
        assert error.line == line
        assert "is not supported in a file that is not valid YAML" in error.problems[0]
        assert loads(*lines.split("\n"), "description: x").notes == ()

    def test_a_merge_key_inside_a_description_is_refused(self) -> None:
        assert refused("description: x: y", "<<: {disallowedTools: Bash}").line == 4

    def test_stars_and_ampersands_in_prose_are_not_references(self) -> None:
        read = loads("description: Use: &x and *x", "tools: *")
        assert (read.description, read.tools) == ("Use: &x and *x", "*")

    def test_a_tool_pattern_is_not_an_alias(self) -> None:
        assert loads("description: b", "disallowedTools: *_write").disallowed_tools == ("*_write",)


class TestOtherSpellings:
    @pytest.mark.parametrize("key", ["Tools", "TOOLS", "Allowed-Tools", "allowed tools", "allowedtools"])
    def test_other_spellings_of_tools_are_read_with_a_warning(self, key: str) -> None:
        read = loads("description: b", f"{key}: Read")
        assert (read.tools, read.extra, read.is_repaired) == (("Read",), {}, False)
        assert warnings_in(read) == [(4, f"{key}: read as tools")]

    @pytest.mark.parametrize(
        "key", ["disallowedtools", "Disallowed-Tools", "disallowed tools", "DeniedTools"]
    )
    def test_other_spellings_of_denials_are_read_with_a_warning(self, key: str) -> None:
        read = loads("description: b", f"{key}: Bash", "disallowedTools: Write")
        assert read.disallowed_tools == ("Bash", "Write")
        assert warnings_in(read) == [(4, f"{key}: read as disallowedTools")]

    @pytest.mark.parametrize("key", ["'*tools*'", '"\\u200Btools"', "tools:", "-tools"])
    def test_a_similar_key_with_other_characters_is_refused(self, key: str) -> None:
        error = refused("description: b", f"{key}: Read")
        assert error.line == 4
        assert "looks like tools" in error.problems[0]

    def test_other_keys_are_kept_with_a_warning(self) -> None:
        read = loads("description: b", "Model: opus", "maxturns: 5", "tool: cursor")
        assert read.extra == {"Model": "opus", "maxturns": 5, "tool": "cursor"}
        assert warnings_in(read) == [
            (4, "Model: not read as model, which is spelled differently"),
            (5, "maxturns: not read as maxTurns, which is spelled differently"),
            (6, "tool: does not limit the tools; use tools and disallowedTools"),
        ]
