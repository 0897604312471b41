"""Entries about paths and hosts: ``Read(src/**)``, ``WebFetch(domain:example.com)``."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import pytest
from agents import FunctionTool, function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import explain
from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.subagent_files.grants import grants_of
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call
from kantan_agents.tool_rules.paths_and_hosts import denies_path, grants_path
from kantan_agents.tools.facts import declare_match, facts_of

_STEPS = st.sampled_from(["a", "b", "ab", "A", "x.py", ".env", "é"])
_paths = st.lists(_STEPS, max_size=4).map("/".join)
_WANTED = st.sampled_from(["a", "b", "*", "**", "a*", "*.py", "?", "??", ".*", "*b*"])
_patterns = st.lists(_WANTED, min_size=1, max_size=4).map("/".join)


def below_root(path: str) -> str | None:
    found = posixpath.normpath(path or ".")
    if found.startswith(("/", "..")):
        return None
    return "" if found == "." else found


READ = ToolFacts(("Read",), "file_path", kind="path", canonical=below_root)
PLAIN = ToolFacts(("Read",), "file_path")


def host_of(url: str) -> str | None:
    return url.partition("://")[2].partition("/")[0] or None


FETCH = ToolFacts(("WebFetch",), "url", kind="domain", canonical=host_of)


def granted(entry: str, value: Any, tool: ToolFacts = READ) -> bool:
    return decide_call(ToolRules.parse({"allow": [entry]}), tool, {tool.parameter or "": value}).allowed


def denied(entry: str, value: Any, tool: ToolFacts = READ) -> bool:
    return not decide_call(ToolRules.parse({"deny": [entry]}), tool, {tool.parameter or "": value}).allowed


@pytest.mark.parametrize(
    ("entry", "covered", "others"),
    [
        (
            "Read(src/**)",
            ["src/a.py", "src/x/y", "./src/a", "src/x/../a"],
            ["a", "srcs/a", "src/../a"],
        ),
        ("Read(*.md)", ["a.md"], ["src/a.md", "a.mdx", "a.md/x"]),
        ("Read(**/*.md)", ["a.md", "src/a.md"], ["a.txt"]),
        ("Read(./*/a?c)", ["x/abc"], ["abc", "x/ac", "x/y/abc"]),
        (
            "Read(path:notes.txt)",
            ["notes.txt", "./notes.txt"],
            ["src/notes.txt", "notes.txt.bak"],
        ),
        ("Read(notes.txt)", ["notes.txt", "x/../notes.txt"], ["src/notes.txt"]),
        ("Read(src/[a])", ["src/[a]"], ["src/a"]),
    ],
)
def test_an_entry_of_allow_covers_paths(entry: str, covered: list[str], others: list[str]) -> None:
    assert [path for path in covered if not granted(entry, path)] == []
    assert [path for path in others if granted(entry, path)] == []


@pytest.mark.parametrize(
    ("entry", "covered", "others"),
    [
        (
            "Read(secrets/**)",
            ["secrets", "SECRETS/a", "x/../secrets/a", "../x", "/etc"],
            ["src/a"],
        ),
        ("Read(path:secrets)", ["secrets", "secrets/a/b", "x/secrets/a"], ["secrets2/a"]),
        ("Read(*.key)", ["a.key", "x/a.KEY", "a.key/x"], ["a.keys"]),
        ("Read(/*.key)", ["a.key"], ["x/a.key"]),
        ("Read(docs)", ["docs/a"], ["src"]),
    ],
)
def test_deny_covers_what_is_below_or_refused(entry: str, covered: list[str], others: list[str]) -> None:
    assert [path for path in covered if not denied(entry, path)] == []
    assert [path for path in others if denied(entry, path)] == []


def test_without_a_path_the_call_is_about_the_root() -> None:
    rules = ToolRules.parse({"allow": ["Read(**)"]})
    assert decide_call(rules, READ, {}).allowed
    assert not decide_call(ToolRules.parse({"allow": ["Read(src/**)"]}), READ, {}).allowed
    assert not decide_call(rules, READ, {"file_path": 5}).allowed


@pytest.mark.parametrize("entry", ["Read(src/**)", "Read(path:src)", "WebFetch(domain:example.com)"])
def test_in_another_tool_allow_covers_nothing_and_deny_all(entry: str) -> None:
    tool = PLAIN if entry.startswith("Read") else ToolFacts(("WebFetch",), "url")
    for value in ("src/a", "src", "https://example.com/", "example.com"):
        assert not granted(entry, value, tool)
        assert denied(entry, value, tool)


@pytest.mark.parametrize(
    ("entry", "allowed", "refused"),
    [
        (
            "WebFetch(domain:example.com)",
            ["example.com"],
            ["www.example.com", "badexample.com"],
        ),
        ("WebFetch(domain:*.Example.com)", ["www.example.com"], ["example.com", "wwwexample.com"]),
    ],
)
def test_a_host_is_granted_exactly_and_denied_with_its_subdomains(
    entry: str, allowed: list[str], refused: list[str]
) -> None:
    assert all(granted(entry, f"https://{host}/x", FETCH) for host in allowed)
    assert not any(granted(entry, f"https://{host}/", FETCH) for host in refused)
    assert denied(entry, "https://example.com/", FETCH) and denied(entry, "https://a.b.example.com/", FETCH)
    assert denied(entry, "nonsense", FETCH) and not denied(entry, "https://badexample.com/", FETCH)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("Read(../x/**)", "must be a path below the root of the tool"),
        ("Read(~/x*)", "must be a path below the root of the tool"),
        ("Read(path:)", "must be a path below the root of the tool"),
        ("WebFetch(domain:a b)", "must name one host"),
        ("WebFetch(domain:https://a/)", "must name one host"),
        ("WebFetch(domain:*)", "must name one host"),
        ("WebFetch(domain:bücher.example)", "in its ASCII form"),
    ],
)
def test_an_entry_that_could_match_nothing_is_an_error(entry: str, problem: str) -> None:
    with pytest.raises(InvalidToolRulesError, match=re.escape(problem)):
        ToolRules.parse({"deny": [entry]})


def test_an_entry_of_a_file_is_about_the_path_even_without_a_wildcard() -> None:
    definition = AgentDefinition("a", "does a", disallowed_tools=("Read(./secrets/key.pem)", "edit(docs)"))
    rules = grants_of(definition).rules
    assert not decide_call(rules, READ, {"file_path": "secrets/key.pem"}).allowed
    assert decide_call(rules, READ, {"file_path": "src/a"}).allowed
    assert not decide_call(rules, PLAIN, {"file_path": "src/a"}).allowed
    assert not decide_call(rules, ToolFacts(("Edit",), "file_path"), {"file_path": "src/a"}).allowed


def test_a_declared_tool_is_explained_with_its_entry() -> None:
    @function_tool(name_override="Read")
    def read(file_path: str) -> str:
        """Read a file."""
        return file_path

    assert isinstance(read, FunctionTool)
    declare_match(read, "file_path", "path", below_root)
    assert facts_of(read).kind == "path"
    answer = explain(read, {"file_path": "x/../secrets/a"}, tool_rules={"deny": ["Read(secrets/**)"]})
    assert not answer.allowed and answer.rule == "deny: Read(secrets/**)"
    assert explain(read, {"file_path": "src/a"}, tool_rules={"allow": ["Read(src/**)"]}).allowed


@given(_patterns, _paths)
def test_patterns_match_as_a_regular_expression_does(pattern: str, path: str) -> None:
    expected = re.fullmatch(_regex(pattern), f"/{path}" if path else "") is not None
    assert grants_path(pattern, path) == expected


@given(_patterns, _paths, _paths)
def test_deny_covers_at_least_what_allow_covers_and_all_below(pattern: str, path: str, more: str) -> None:
    if grants_path(pattern, path):
        assert denies_path(pattern, path)
        assert denies_path(pattern, f"{path}/{more}")
        assert denies_path(pattern, path.upper())


def _regex(pattern: str) -> str:
    parts = []
    for step in pattern.split("/"):
        if step == "**":
            parts.append("(?:/[^/]+)*")
        else:
            parts.append(
                "/" + "".join({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)) for char in step)
            )
    return "".join(parts)
