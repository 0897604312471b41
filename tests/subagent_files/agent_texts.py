"""Hypothesis strategies for definitions and for the text of subagent files."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kantan_agents import AgentDefinition
from kantan_agents.core.context import is_reserved
from kantan_agents.errors import InvalidDefinitionError
from kantan_agents.subagent_files.frontmatter.keys import FIELD_OF, looks_like

# Separated by "¦": text with a special meaning in YAML, in Markdown or in subagent files.
HARD = [
    "---",
    "\n",
    "\r",
    "\r\n",
    "\x85",
    "\u2028",
    "\ufeff",
    "\xa0",
    "\u202f",
    "\t",
    " ",
    "#",
    ": ",
    " #",
    "'",
    '"',
    "\\",
    "\\n",
    "\\\\n",
    "\\x5c",
    "\x00",
    "\x07",
    "😀",
    "- ",
    "? ",
    "yes",
    "~",
    "null",
    "1.10",
    "0x1f",
    "2024-01-01",
    "&a",
    "*a",
    "!!int",
    "|",
    ">",
    "{}",
    "[",
    "%",
    "@",
    "`",
    "<<",
    "all",
    "(",
    ")",
    ",",
    "a: b",
    "é",
]
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.sampled_from(HARD), max_size=6).map("".join),
)
filled = texts.filter(lambda text: bool(text.strip()))


def is_accepted(**values: Any) -> bool:
    try:
        AgentDefinition(name="a", description="b", **values)
    except InvalidDefinitionError:
        return False
    return True


known_tools = st.sampled_from(
    ["Read", "Bash(git diff:*)", "Agent(a, b)", "mcp__x__*", "mcp__[ab]*", "a.b/c:d"]
)
names_of_tools = st.one_of(known_tools, st.just("My Tool"), texts).filter(
    lambda text: "all" not in text.lower()
)
lists_of_tools = st.lists(names_of_tools, max_size=4).filter(lambda names: is_accepted(tools=names))
letters = st.text('abRZ_-.*?()[]/:09é ,;"`', max_size=8)
denied = st.one_of(known_tools, letters, texts).filter(lambda name: is_accepted(disallowed_tools=[name]))
scalars = st.one_of(
    texts, st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none()
)
data: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
free = texts.filter(lambda key: not is_reserved(key))
contexts = st.one_of(st.none(), texts, st.lists(data, max_size=3), st.dictionaries(free, data, max_size=3))
maybe = st.none() | texts


def has_no_meaning(key: str) -> bool:
    return key not in FIELD_OF and looks_like(key) is None and "tool" not in key.lower()


definitions = st.builds(
    AgentDefinition,
    name=filled,
    description=filled,
    system_prompt=texts,
    tools=st.just("*") | lists_of_tools,
    disallowed_tools=st.just(["*"]) | st.lists(denied, max_size=3),
    model=maybe,
    context=contexts,
    color=maybe,
    permission_mode=maybe,
    max_turns=st.none() | st.integers(1, 10**9),
    skills=st.lists(texts, max_size=3),
    mcp_servers=data,
    hooks=data,
    memory=maybe,
    effort=maybe,
    initial_prompt=maybe,
    category=maybe,
    version=maybe,
    extra=st.dictionaries(texts.filter(has_no_meaning), data, max_size=3),
)

LINES = [
    "name: a",
    "name: a",
    "name:\xa0a",
    "description: b",
    "description: b",
    "description: Use: this",
    'description: "open',
    "description: |",
    "description:",
    "user: hi",
    "assistant: ho: ho",
    "Context: x",
    "  indented: line",
    "\ttabbed",
    "tools: *",
    "tools: Read, Grep",
    "tools: [Read",
    "tools:",
    "Tools: Read",
    '"tools": Read',
    "- tools: Read",
    "  tools: Read",
    "* Read",
    "  • Grep",
    "tools: * Read",
    "tools: all, Read",
    "disallowedTools: Bash; Write",
    "disallowedTools: [Bash",
    "disallowedTools: `Bash`, “Write”",
    "disallowedTools: {Bash: true",
    "deniedTools: *h",
    "  Bash(rm:*) # why",
    "context: x",
    "author: me",
    "hooks: {a: b: c",
    "name: twice",
    "...",
    "## Heading",
    "- Read",
    "  - Grep",
    "allowedTools: all",
    "model:opus",
    "# note",
    "",
    " ",
    "---",
    "-----  ",
    "color: #ff0000",
    "maxTurns: 5",
    "extra: {a: [1, 2]}",
    "hooks: &h {a: 1}",
    "x: *h",
    "<<: *h",
    "tools: !!python/name:os.system",
    "'",
    '"',
    "context: {result: 1}",
    "text with \\n in it",
    "\u2028",
]
file_texts = st.builds(
    lambda lines, newline, opening: opening + newline.join(["---", *lines]),
    st.lists(st.sampled_from(LINES) | texts, max_size=10),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\ufeff", "\n"]),
)
