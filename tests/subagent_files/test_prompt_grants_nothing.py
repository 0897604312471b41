"""The words of a prompt never grant a tool, however the frontmatter above them was repaired."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files import AgentDefinition, ToolFilter

HEAD = "---\nname: a\ndescription: d\n"


def loaded(text: str) -> AgentDefinition | None:
    try:
        return AgentDefinition.loads(text)
    except (AgentFileError, InvalidDefinitionError):
        return None


@pytest.mark.parametrize("tools", ["tools: Read", "tools:\n- Read", "tools:\n  - Read", "allowedTools: Read"])
@pytest.mark.parametrize("gap", ["\n", "\n\n"])
@pytest.mark.parametrize("heading", ["# Role", "## Role\n\n### Rules", "#Role"])
@pytest.mark.parametrize("below", ["- Bash", "  - Bash", "Bash, Write", "\n- Bash", "- Bash\n\nmodel: opus"])
def test_a_heading_ends_a_frontmatter_without_a_closing_line(
    tools: str, gap: str, heading: str, below: str
) -> None:
    read = AgentDefinition.loads(f"{HEAD}{tools}{gap}{heading}\n{below}\n")
    assert (read.tools, read.model) == (("Read",), None)
    assert read.system_prompt == f"{heading}\n{below}\n"
    assert [note.message for note in read.repairs] == ["the frontmatter has no closing line '---'"]


def test_a_heading_does_not_give_a_tool_to_an_empty_list() -> None:
    assert AgentDefinition.loads(f"{HEAD}tools:\n\n# Role\n- Bash\n").tools == ()


def test_a_heading_does_not_change_the_name_or_the_context() -> None:
    read = AgentDefinition.loads(f"{HEAD}\n# Role\n\nname: admin\ncontext: {{a: 1}}\n")
    assert (read.name, read.context) == ("a", None)


@pytest.mark.parametrize(
    ("tools", "line"),
    [
        ("tools: Read\n\n  Bash, Write", 6),
        ("tools: Read\nYou are a reviewer", 5),
        ("tools: Read\n- Bash", 5),
        ("tools:\n- Read\n\n- Bash", 7),
        ("tools:\n\n  - Bash", 6),
        ("tools:\n  - Read\n # Role\n  - Bash", 6),
        ('tools: "Read,\n\n  Bash"', 6),
        ("tools: [Read,\n\n  Bash]", 6),
        ("base: &b\n- Read\n\n# Role\n- Bash\ntools: *b", 9),
        ("base: &b\n  tools: Bash\n<<: *b", 5),
    ],
)
def test_a_line_that_may_belong_to_tools_or_to_the_prompt_is_refused(tools: str, line: int) -> None:
    with pytest.raises(InvalidDefinitionError, match=rf"line {line}: .*closing line '---'") as raised:
        AgentDefinition.loads(f"{HEAD}{tools}\n\nYou are a.\n")
    assert len(raised.value.problems) == 1


@pytest.mark.parametrize(
    "tools",
    ["tools: Read\n# Role\n- Bash", "tools: Read\n\n- Bash", "tools:\n- Read\n\n# Role\n- Bash\nmodel: x"],
)
def test_such_a_line_above_a_rule_is_refused_if_the_yaml_is_not_valid(tools: str) -> None:
    with pytest.raises(InvalidDefinitionError, match=r"write all of tools without blank lines") as raised:
        AgentDefinition.loads(f"{HEAD.replace(': d', ': Use: d')}{tools}\n---\n\nYou are a.\n")
    assert "closing line" not in str(raised.value)  # the file has one


def test_a_heading_below_denied_tools_never_ends_their_list_early() -> None:
    read = AgentDefinition.loads(f"{HEAD}disallowedTools:\n- Bash\n# and\n- Write\n\nYou are a.\n")
    assert read.disallowed_tools == ("Bash", "Write")


@pytest.mark.parametrize("key", ["disallowedTools: Bash", "tools: Read"])
def test_a_limit_below_a_heading_is_never_lost(key: str) -> None:
    read = loaded(f"{HEAD}\n# Role\nYou are a.\n\n{key}\n")
    assert read is not None
    assert "Bash" in read.disallowed_tools or read.tools == ("Read",)


FRONT = [
    "model: opus",
    "tools: Read",
    "tools: Read, Grep",
    "tools:",
    "tools: []",
    "tools:\n- Read",
    "tools:\n  - Read\n  - Grep",
    "tools: [Read",
    'tools: "Read',
    "tools: `Read`",
    "allowedTools: Read",
    "description: Use: it",
    "category: x",
    "# note",
]
WORDS = [
    "# Role",
    " # Role",
    "#Role",
    "Role\n====",
    "You are a reviewer.",
    "- Bash",
    "* Bash",
    "  - Bash",
    "    Bash",
    "Bash, Write",
    "Bash",
    "]",
    '"',
    "Bash]",
    'Bash"',
    "Note: Bash",
    "tools: Bash",
    "tools: all",
    "Tools: Bash",
    "allowedTools: [Bash, Read]",
    "- tools: Bash",
    "model: opus",
    "...",
    "***",
    "```",
    "",
    "",
]
BEGIN = ["", "# Role", " # Role", "#Role", "You are a reviewer."]


def is_subset(granted: ToolFilter, wanted: ToolFilter) -> bool:
    return wanted == "*" or (granted != "*" and set(granted) <= set(wanted))


@given(
    st.lists(st.sampled_from(FRONT), max_size=3),
    st.sampled_from(BEGIN),
    st.lists(st.sampled_from(WORDS), max_size=6),
    st.sampled_from(["", "\n---\n\nMore: of it.\n"]),
    st.sampled_from(["\n", "\r\n"]),
)
@example(["tools: Read"], "", ["# Role", "- Bash"], "", "\n")
def test_a_prompt_grants_no_tool_that_its_frontmatter_does_not(
    front: list[str], begin: str, words: list[str], rule: str, newline: str
) -> None:
    if rule and begin not in ("", "# Role"):
        begin = ""
    lines = HEAD + "".join(f"{line}\n" for line in front)
    text = f"{lines}{begin}\n" + "\n".join(words) + rule
    read, wanted = loaded(text.replace("\n", newline)), loaded(f"{lines}---\n")
    if read is None or wanted is None or not read.is_repaired:
        return  # refused, or YAML that every parser reads the same way
    assert is_subset(read.tools, wanted.tools)
