"""What a plan may ask for, and how a person sees it."""

from __future__ import annotations

import pytest

from kantan_agents.cli.chat.plan_entries import PlanEntry, read_entries

KNOWN = frozenset(
    {"Bash", "Write", "Edit", "MultiEdit", "Read", "WebFetch", "KillShell", "pay", "mcp__docs__search"}
)
PROTECTED = "it names a protected file, which is asked for each time"


def read(*texts: str) -> tuple[tuple[PlanEntry, ...], tuple[str, ...]]:
    return read_entries(texts, KNOWN)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("Write(src/**)", "create or overwrite every file in src/ and below"),
        ("Write(**)", "create or overwrite every file in the folder and below"),
        ("Edit(docs/*.md)", "change parts of every file that matches docs/*.md"),
        ("MultiEdit(path:my notes.txt)", "change parts of the file my notes.txt"),
        ("Bash(pytest -q)", "run exactly: pytest -q"),
        ("Bash(git status:*)", "run commands that begin with: git status"),
        ("WebFetch(domain:docs.example.com)", "fetch pages of docs.example.com"),
        ("WebFetch(domain:*.example.com)", "fetch pages of every host below example.com"),
        ("KillShell", "every call of KillShell"),
        ("mcp__docs__search", "every call of mcp__docs__search"),
        ("pay(Aiko)", "calls of pay with: Aiko"),
        ("pay(Aiko:*)", "calls of pay that begin with: Aiko"),
    ],
)
def test_an_entry_in_plain_words(entry: str, words: str) -> None:
    assert read(entry) == ((PlanEntry(entry, words),), ())


@pytest.mark.parametrize(
    ("entry", "remark"),
    [
        ("Bash(pytest:*)", "Bash(pytest:*) permits any program, as in: pytest FILE"),
        ("Bash(python3.11:*)", "Bash(python3.11:*) permits any program, as in: python -c CODE"),
        ("Bash(sudo:*)", "Bash(sudo:*) permits any program, as in: sudo PROGRAM"),
        ("Bash(cat .mcp.json)", PROTECTED),
        ("Write(.git/config)", PROTECTED),
        ("Write(a/.CLAUDE/**)", PROTECTED),
    ],
)
def test_full_shells_and_protected_files_are_remarked(entry: str, remark: str) -> None:
    ((found,), problems) = read(entry)
    assert (found.remarks, problems) == ((remark,), ())


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        *((name, f"say which, as in {name}(") for name in ("Bash", "Write", "MultiEdit", "WebFetch", "Read")),
        *((f"{name}(*)", "it permits every call") for name in ("Bash", "Write", "WebFetch")),
        ("*", "there is no tool *"),
        ("Writ*(src/**)", "there is no tool Writ*"),
        ("mcp__docs", "there is no tool mcp__docs"),
        ("mcp__docs__*", "there is no tool"),
        ("Unknown", "there is no tool Unknown"),
        ("bash(ls)", "there is no tool bash"),
        ("(ls)", "there is no tool"),
        ("", "there is no tool"),
        ("Bash(", "neither a tool name nor"),
        ("Bash()", "must name a tool and"),
        ("Bash(:*)", "must name a tool and"),
        ("Bash(git *)", "only a final :*"),
        ("Bash(ls; rm:*)", "covers no chained command"),
        ("Bash(ls\nrm x)", "several lines"),
        ("Write(src/\u202e**)", "cannot be seen"),
        ("Write(src/\u3164**)", "cannot be seen"),
        *(
            (f"Write({path})", "relative to it")
            for path in ("//etc/**", "/etc/passwd", "../x", "src/../../x", "file:///etc/x", "src:*")
        ),
        ("Write(~/x/**)", "below the root"),
        ("Write(../**)", "below the root"),
        ("Write({src,docs}/**)", "one entry for each"),
        ("WebFetch(https://example.com/a)", "it must name a host"),
        ("WebFetch(domain:*.com)", "it must name a host"),
        ("WebFetch(domain:*)", "must name one host"),
    ],
)
def test_what_is_too_wide_or_wrong_is_refused(entry: str, reason: str) -> None:
    entries, problems = read(entry, "Write(a.md)", entry)
    assert [one.text for one in entries] == ["Write(a.md)"]
    (problem,) = problems
    assert problem.startswith(f"{entry!r}: ") and reason in problem
