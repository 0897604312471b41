"""Entries about paths and hosts: ``Read(src/**)``, ``WebFetch(domain:example.com)``."""

from __future__ import annotations

import posixpath
import re
from typing import Any

import attrs
import pytest
from agents import FunctionTool, function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import AgentDefinition, explain
from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.subagent_files import grants_of
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call
from kantan_agents.tool_rules.paths_and_hosts import denies_path, grants_path, is_likely_outside, is_outside
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
ROOTED = attrs.evolve(READ, roots=("/private/srv/my app", "/srv/my app"))
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
        ("Read({{name}}/$id*)", ["{{name}}/$id.ts"], ["name/id.ts"]),
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
        ("Read(path: .env)", [".env", "x/.env"], ["path: .env"]),
        ("Read( Path :.env)", [".env"], ["a"]),
        ("R*(path: .env)", [".env"], ["a"]),
        ("Read(docs)", ["docs/a"], ["src"]),
    ],
)
def test_deny_covers_what_is_below_or_refused(entry: str, covered: list[str], others: list[str]) -> None:
    assert [path for path in covered if not denied(entry, path)] == []
    assert [path for path in others if denied(entry, path)] == []


@pytest.mark.parametrize("root", ["/srv/my app", "/private/srv/my app"])
@pytest.mark.parametrize(
    "form", ["{}", "/{}", "file://{}", "FILE://localhost{}", "path:{}", "path:/{}", "./{}"]
)
@pytest.mark.parametrize(
    ("rest", "covered", "others"),
    [
        ("/secrets/**", ["secrets/k", "SECRETS/a/b"], ["src/a", "x/secrets/k"]),
        ("/secrets", ["secrets/k", "secrets"], ["secrets2", "src"]),
        ("/*.key", ["a.key"], ["x/a.key"]),
        ("/**/*.key", ["a.key", "x/a.KEY"], ["a.txt"]),
        ("", ["a", "x/y"], []),
    ],
)
def test_deny_resolves_an_absolute_path_against_the_root(
    root: str, form: str, rest: str, covered: list[str], others: list[str]
) -> None:
    entry = f"Read({form.format(root)}{rest})"
    assert [path for path in covered if not denied(entry, path, ROOTED)] == []
    assert [path for path in others if denied(entry, path, ROOTED)] == []


@pytest.mark.parametrize(
    ("entry", "covered", "others"),
    [
        ("Read(/srv/**)", ["a"], []),  # holds the root
        ("Read(/srv/my app/../my app/k)", ["k"], ["x/k"]),
        ("Read(../my app/k)", ["k"], ["x"]),
        ("Read(x/../secrets/k)", ["secrets/k"], ["x"]),
        ("Read(secrets\\k)", ["secrets/k"], ["k"]),
        ("Read(file:///srv/my%20app/k)", ["k"], ["x"]),
        ("Read(/my  file)", ["my  file"], ["my file"]),  # two blanks
        ("R*(path:/srv/my app/k)", ["k"], ["x"]),
        ("Read(/srv/my app/k:*)", ["k/a"], ["x"]),
        ("Read(/srv/my apps/**)", ["srv/my apps/x"], ["a"]),
        ("Read(//home/**)", ["home/a"], ["a"]),
        ("Read(/home/**)", ["home/a"], ["a"]),
    ],
)
def test_deny_reads_a_path_in_each_way_that_it_may_be_meant(
    entry: str, covered: list[str], others: list[str]
) -> None:
    assert [path for path in covered if not denied(entry, path, ROOTED)] == []
    assert [path for path in others if denied(entry, path, ROOTED)] == []


def test_a_path_below_the_home_folder_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv")
    assert denied("Read(~/my app/k)", "k", ROOTED) and not denied("Read(~/my app/k)", "x", ROOTED)


@pytest.mark.parametrize(
    ("entry", "covered", "others"),
    [
        ("Read(//srv/my app/src/**)", ["src/a"], ["a", "srv/my app/src/a"]),
        ("Read(file:///srv/my app/src/a)", ["src/a"], ["a"]),
        ("Read(/src/**)", ["src/a"], ["x/src/a"]),
        ("Read(/srv/my app/src/**)", ["srv/my app/src/a"], ["src/a"]),  # relative: allow takes one meaning
        ("Read(//srv/**)", ["a", "x/y"], []),
        ("Read(//srv/*)", [""], ["a"]),
        ("Read(//home/**)", [], ["a", "home/a"]),
    ],
)
def test_allow_takes_a_path_as_absolute_only_with_two_slashes(
    entry: str, covered: list[str], others: list[str]
) -> None:
    assert [path for path in covered if not granted(entry, path, ROOTED)] == []
    assert [path for path in others if granted(entry, path, ROOTED)] == []


@given(_patterns, _paths)
def test_a_root_changes_nothing_for_a_relative_pattern(pattern: str, path: str) -> None:
    entry = f"Read(path:{pattern})"
    for decide in (granted, denied):
        assert decide(entry, path, READ) == decide(entry, path, ROOTED)


@given(_patterns, _paths)
def test_an_absolute_pattern_denies_and_grants_what_the_relative_one_grants(pattern: str, path: str) -> None:
    absolute = f"Read(path://srv/my app/{pattern})"
    assert granted(absolute, path, ROOTED) == granted(f"Read(path:{pattern})", path, ROOTED)
    assert denied(absolute, path, ROOTED) == denied(f"Read(path:./{pattern}/.)", path, ROOTED)


@pytest.mark.parametrize(
    ("entry", "grants", "denies"),
    [
        ("//srv/my app/**", False, False),
        ("//srv/*/k", False, False),
        ("//srv/**/k", False, False),
        ("//srv", True, False),
        ("//home/**", True, True),
        ("//srv/my apps/**", True, True),
        ("../my app/k", True, False),
        ("../my apps/k", True, True),
        ("file:///etc/passwd", True, True),
        ("/home/**", False, False),
        ("src/**", False, False),
    ],
)
def test_an_absolute_pattern_may_be_outside_of_the_root(entry: str, grants: bool, denies: bool) -> None:
    assert is_outside(entry, ROOTED.roots, grants=True) is grants
    assert is_outside(entry, ROOTED.roots, grants=False) is denies


@pytest.mark.parametrize(
    ("entry", "is_likely"),
    [
        ("/etc/**", True),
        ("/srv/my ap/.env", True),  # a root, misspelt
        ("/srv/my app/.env", False),
        ("/srv/*/.env", False),
        ("/srv", False),
        ("/docs/**", False),
        ("//etc/**", False),  # outside for certain
        ("etc/**", False),
    ],
)
def test_a_pattern_of_deny_with_one_slash_may_be_meant_as_an_absolute_path(
    entry: str, is_likely: bool
) -> None:
    assert is_likely_outside(entry, ROOTED.roots) is is_likely


def test_without_a_path_the_call_is_about_the_root() -> None:
    rules = ToolRules.parse({"allow": ["Read(**)"]})
    assert decide_call(rules, READ, {}).allowed
    assert not decide_call(ToolRules.parse({"allow": ["Read(src/**)"]}), READ, {}).allowed
    assert not decide_call(rules, READ, {"file_path": 5}).allowed


@pytest.mark.parametrize(
    "path", ["/srv/my app/.env", "//srv/my app/.env", "../my app/.env", "~/.env", "file:///srv/my app/.env"]
)
def test_in_another_tool_deny_covers_all_for_a_path_that_it_may_be_given_in_another_form(path: str) -> None:
    assert denied(f"Read({path})", ".env", PLAIN) and denied(f"Read({path}:*)", ".env", PLAIN)
    assert granted(f"Read({path})", path, PLAIN) and not granted(f"Read({path})", ".env", PLAIN)
    assert denied("Read(.env)", ".env", PLAIN) and not denied("Read(.env)", "a", PLAIN)


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
    ("entry", "host"),
    [
        ("WebFetch(domain:[::1])", "::1"),
        ("WebFetch(domain:0:0:0:0:0:0:0:1)", "::1"),
        ("WebFetch(domain:2001:DB8::1)", "2001:db8::1"),
        ("WebFetch(domain:[::ffff:127.0.0.1])", "127.0.0.1"),
        ("WebFetch(domain:Example.COM.)", "example.com"),
    ],
)
def test_a_host_is_compared_in_one_spelling(entry: str, host: str) -> None:
    fetch = attrs.evolve(FETCH, canonical=lambda url: url)
    assert granted(entry, host, fetch) and denied(entry, host, fetch)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("Read(../x/**)", "must be a path below the root of the tool"),
        ("Read(~/x*)", "must be a path below the root of the tool"),
        ("Read(path:)", "must be a path below the root of the tool"),
        ("Read(//srv/../x/**)", "must be a path below the root of the tool"),
        ("Read(C:/x/**)", "must be a path below the root of the tool"),
        ("Read(path:C:\\x)", "must be a path below the root of the tool"),
        ("Read(file:///C:/x/**)", "must be a path below the root of the tool"),
        ("Read($HOME/x/**)", "must be a path below the root of the tool"),
        ("Read(path:${PWD}/x)", "must be a path below the root of the tool"),
        ("Read(C:/x/.env)", "must be a path below the root of the tool"),
        ("Read(C:\\x\\.env)", "must be a path below the root of the tool"),
        ("Edit(file:///C:/x)", "must be a path below the root of the tool"),
        ("Read($PWD/.env)", "must be a path below the root of the tool"),
        ("Read($HOME:*)", "must be a path below the root of the tool"),
        ("Read(~root/.env)", "must be a path below the root of the tool"),
        ("Read(**/*.{key,pem})", "write one entry for each of the alternatives"),
        ("Read(x.{key,pem})", "write one entry for each of the alternatives"),
        ("WebFetch(domain:127.1)", "must name one host"),
        ("WebFetch(domain:a..b)", "must name one host"),
        ("WebFetch(domain:a!b.example)", "must name one host"),
        ("WebFetch(domain::::)", "must name one host"),
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
