"""Entries of the form ``Tool(param pattern)``, mainly for shell commands."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.testing.properties import event, expect_events
from kantan_agents.testing.strategies import json_values, tool_calls, tool_rules
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call, decide_tool, needs_arguments
from kantan_agents.tool_rules.calls import parse_call_pattern

BASH = ToolFacts(("Bash",), "command")

words = st.text("abgit-./=_09é", min_size=1, max_size=5)
commands = st.lists(words, min_size=1, max_size=4).map(" ".join)
anything = st.text(" \tagit'\"\\#-=$*é", max_size=8)
operators = st.sampled_from(
    [
        ";",
        "&",
        "&&",
        "|",
        "||",
        "|&",
        ">",
        ">>",
        "<",
        "<<",
        "<(",
        "`",
        "$(",
        "(",
        ")",
        "${",
        "\n",
        "\r",
        "\r\n",
    ]
)


def granted(entry: str, command: Any) -> bool:
    return decide_call(ToolRules.parse({"allow": [entry]}), BASH, {"command": command}).allowed


def denied(entry: str, command: Any) -> bool:
    return not decide_call(ToolRules.parse({"deny": [entry]}), BASH, {"command": command}).allowed


def problem_of(entry: str) -> str:
    with pytest.raises(InvalidToolRulesError) as caught:
        ToolRules.parse({"allow": [entry]})
    (problem,) = caught.value.problems
    return problem


# Grants


@given(commands, commands)
def test_a_prefix_grants_its_command_with_any_further_words(prefix: str, more: str) -> None:
    entry = f"Bash({prefix}:*)"
    assert granted(entry, prefix)
    assert granted(entry, f"{prefix} {more}")
    assert granted(entry, f" {prefix.replace(' ', '  ')}\t{more}\n")


@given(commands, st.text("abgit-._09é", min_size=1, max_size=3))
def test_a_prefix_ends_at_the_end_of_a_word(prefix: str, rest_of_word: str) -> None:
    assert not granted(f"Bash({prefix}:*)", f"{prefix}{rest_of_word}")
    assert not denied("Bash(git:*)", f"git{rest_of_word}")


@given(commands, anything, operators, anything)
@example("git status", "", " && ", "rm -rf /")
@example("git", " log --format='", "`", "id`'")
@example("git", " log ", "<(", "rm x)")
@example("git", " log ", "(", "Remove-Item x)")
@example("git", " ${x@P}", "${", "x:='\\044(rm)'}")
@example("git", " log\\", "\n", "rm -rf /")
def test_a_prefix_never_grants_a_chained_command(prefix: str, before: str, operator: str, after: str) -> None:
    command = f"{prefix} {before}{operator}{after}"
    # A trailing line end does not chain commands.
    assert granted(f"Bash({prefix}:*)", command) == (operator == "\n" and not after.strip(" \t"))


@given(commands, anything, operators, anything)
def test_a_chained_command_is_granted_only_word_for_word(
    prefix: str, before: str, operator: str, after: str
) -> None:
    command = f"{prefix} x{before}{operator}{after}x"
    assert not granted(f"Bash({prefix})", command)
    if "*" not in command:
        assert granted(f"Bash({command})", command)


@given(commands, commands)
def test_an_exact_entry_grants_that_call_only(exact: str, other: str) -> None:
    assert granted(f"Bash({exact})", exact)
    assert granted(f"Bash({exact})", f"  {exact.replace(' ', '   ')}\t\n")
    assert granted(f"Bash({exact})", other) == (exact == other)


@pytest.mark.parametrize(
    "blank", ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\N{NO-BREAK SPACE}", "\N{LINE SEPARATOR}", "\x00", ""]
)
@pytest.mark.parametrize("entry", ["Bash(git status)", "Bash(git status:*)", "Bash(git:*)"])
def test_only_blanks_separate_the_words_of_a_granted_call(entry: str, blank: str) -> None:
    # `git`, a line end, `status` runs two programs; a no-break space is part of a name.
    assert not granted(entry, f"git{blank}status")


def test_a_star_grants_every_call_and_needs_no_arguments() -> None:
    rules = ToolRules.parse({"allow": ["Bash(*)"]})
    assert not needs_arguments(rules, BASH)
    assert decide_call(rules, BASH, {"command": "a; b"}).allowed
    assert decide_call(rules, BASH, {}).allowed
    assert not rules.permits("Shell")


def test_a_star_denies_every_call() -> None:
    rules = ToolRules.parse({"deny": ["Bash(*)"]})
    assert not rules.permits("Bash")
    assert decide_tool(rules, BASH).rule == "deny: Bash(*)"


def test_a_star_covers_any_text() -> None:
    pattern = parse_call_pattern("Bash(*)")
    assert pattern.grants(["a; b"])
    assert pattern.denies(["a; b"])


def test_a_plain_name_next_to_a_call_pattern_covers_all_calls() -> None:
    rules = ToolRules.parse({"allow": ["Bash(git:*)", "Bash"]})
    assert decide_call(rules, BASH, {"command": "rm x"}).allowed


def test_the_tool_of_a_call_pattern_may_be_a_glob() -> None:
    rules = ToolRules.parse({"allow": ["*sh(git:*)"]})
    assert decide_call(rules, ToolFacts(("zsh",), "command"), {"command": "git log"}).allowed
    assert not decide_call(rules, ToolFacts(("zsh",), "command"), {"command": "rm"}).allowed
    assert not decide_call(rules, ToolFacts(("python",), "code"), {"code": "git log"}).allowed


@given(commands, json_values())
def test_a_value_that_cannot_be_matched_is_not_granted_and_is_denied(prefix: str, value: Any) -> None:
    if isinstance(value, str) or (
        isinstance(value, list) and value and all(isinstance(v, str) for v in value)
    ):
        return
    assert not granted(f"Bash({prefix}:*)", value)
    assert denied(f"Bash({prefix}:*)", value)


def test_a_tool_without_a_text_parameter_is_not_granted_and_is_denied() -> None:
    tool = ToolFacts(("clock",))
    assert not decide_call(ToolRules.parse({"allow": ["clock(now)"]}), tool, {"command": "now"}).allowed
    assert not decide_call(ToolRules.parse({"deny": ["clock(now)"]}), tool, {"command": "later"}).allowed


def test_several_commands_are_granted_if_each_is_and_denied_if_one_is() -> None:
    assert granted("Bash(git:*)", ["git log", "git status"])
    assert not granted("Bash(git:*)", ["git log", "rm x"])
    assert not granted("Bash(git:*)", [])
    assert denied("Bash(rm:*)", ["git log", "rm x"])
    assert not denied("Bash(rm:*)", ["git log", "git status"])


def test_the_words_of_one_command_are_denied_like_the_command() -> None:
    assert denied("Bash(git push:*)", ["git", "push", "--force"])
    assert denied("Bash(git push)", ["git", "push"])
    assert denied("Bash(git push:*)", ["git", "-C", "a b", "push"])
    assert denied("Bash(git push:*)", ["bash", "-c", "git -C 'a b' push"])
    assert denied("Bash(git push:*)", ["ssh", "host", "git -C", "'a b'", "push"])
    assert not denied("Bash(git push:*)", ["git", "pull"])


# Denials


@given(commands, commands, operators, st.booleans())
def test_a_denied_command_is_found_behind_any_operator(
    prefix: str, other: str, operator: str, spaced: bool
) -> None:
    space = " " if spaced else ""
    behind = f"{other}{space}{operator}{space}{prefix} x"
    # After < or > comes a file name, which is treated as a command anyway.
    assert denied(f"Bash({prefix}:*)", behind)


@given(commands, commands)
def test_a_denied_command_is_found_in_any_notation(prefix: str, other: str) -> None:
    for command in (
        prefix,
        f"{prefix} {other}",
        f"/usr/bin/{prefix}",
        f"'{prefix}' {other}",
        f"A=1 {prefix}",
    ):
        assert denied(f"Bash({prefix}:*)", command)


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "  rm\tx",
        "/bin/rm x",
        "true; rm x",
        "true&&rm x",
        "true || rm x",
        "true | rm x",
        "true & rm x",
        "true\nrm x",
        "true\r\nrm x",
        "echo $(rm x)",
        "echo `rm x`",
        'echo "$(rm x)"',
        "cat <(rm x)",
        "(rm x)",
        "{ rm x; }",
        "a=(1); rm x",
        "'rm' x",
        '"rm" x',
        "r''m x",
        'r"m" x',
        "r\\m x",
        "r\\\nm x",
        "$'rm' x",
        "rm${IFS}x",
        "X=1 rm x",
        "X= rm x",
        "X+=1 rm x",
        "X[0]=1 Y=2 rm x",
        "X='a b' rm x",
        'X="a;b" Y="c \\" d" rm x',
        "X=a\\ b rm x",
        "X=$(echo a b) rm x",
        ">out rm x",
        "> out rm x",
        "2>/dev/null rm x",
        "2>&1 >'a b' rm x",
        "</dev/null rm x",
        "if true; then rm x; fi",
        "if rm x; then true; fi",
        "for i in 1 2; do rm $i; done",
        "while ! rm x; do true; done",
        "f() { rm x; }",
        "case a in a) rm x;; esac",
        "time rm x",
        "sudo -n rm x",
        "env A=1 rm x",
        "nohup nice -n 10 rm x",
        "timeout 5s rm x",
        "ls | xargs -0 rm",
        "eval 'rm x'",
        "sh -c 'rm x'",
        '/bin/bash -lc "true; rm x"',
        "rm\N{NO-BREAK SPACE}x",
        "it's; rm x",
        "rm",
    ],
)
def test_a_denied_command_is_found(command: str) -> None:
    assert denied("Bash(rm:*)", command)


@pytest.mark.parametrize(
    "command",
    ["git rm x", "echo rm", "rmdir x", "form x", "./rm.sh x", "ls -rm", "git commit -m 'rm it'", ""],
)
def test_a_denied_word_is_allowed_in_other_positions(command: str) -> None:
    assert not denied("Bash(rm:*)", command)


@pytest.mark.parametrize(
    "command",
    ["rm -rf x", "rm  -rf   x ", "true;rm -rf x", "sudo rm -rf x && ls", "'rm' -rf \"x\"", "/bin/rm -rf x"],
)
def test_an_exactly_denied_call_is_found(command: str) -> None:
    assert denied("Bash(rm -rf x)", command)


@pytest.mark.parametrize("command", ["rm -rf x y", "rm -rf", "rm x"])
def test_a_call_that_is_not_exactly_the_denied_one_is_not_denied(command: str) -> None:
    assert not denied("Bash(rm -rf x)", command)


@pytest.mark.parametrize(
    "command", ["curl u|sh", "cd /tmp; curl u |  sh", "(curl u | sh)", "curl 'u' | /bin/sh"]
)
def test_a_denied_chain_is_found_inside_a_longer_one(command: str) -> None:
    wanted = not command.endswith("/bin/sh")  # only the first command may have a path in front
    assert denied("Bash(curl u | sh)", command) is wanted


@expect_events("denied")
@given(tool_rules(["Bash"]), st.data())
def test_a_denied_call_stays_denied_in_a_chain(rules: dict[str, Any], data: st.DataObject) -> None:
    denying = ToolRules.parse({"deny": rules["deny"]})
    _, arguments = data.draw(tool_calls(denying, ["Bash"]))
    command = arguments.get("command", "git")
    if not decide_call(denying, BASH, {"command": command}).allowed:
        event("denied")
        for longer in (f"true; {command}", f"true && {command}", f"({command})", f"true\n{command}\n"):
            assert not decide_call(denying, BASH, {"command": longer}).allowed


@given(st.text(max_size=30))
def test_any_text_can_be_matched(command: str) -> None:
    for entry in ("Bash(git:*)", "Bash(git log)", "Bash(a | b)", "Bash('':*)", "Bash($(x))"):
        assert isinstance(granted(entry, command), bool)
        assert isinstance(denied(entry, command), bool)


def test_a_call_that_is_granted_and_denied_is_denied() -> None:
    rules = ToolRules.parse({"allow": ["Bash(git:*)"], "deny": ["Bash(git push:*)"]})
    assert decide_call(rules, BASH, {"command": "git log"}).allowed
    assert decide_call(rules, BASH, {"command": "git push -f"}).rule == "deny: Bash(git push:*)"
    assert not decide_call(rules, BASH, {"command": "git -c x=y push"}).allowed


# Errors when the rules are parsed


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("Bash(git", "is neither a tool name nor Tool(param pattern)"),
        ("Bash)", "is neither a tool name nor Tool(param pattern)"),
        ("(git)", "is neither a tool name nor Tool(param pattern)"),
        ("Bash(git) ", "is not a tool name"),
        ("Bash(git)x", "is neither a tool name nor Tool(param pattern)"),
        ("Bash()", "must name a tool and, in parentheses, what its call looks like"),
        ("Bash( )", "must name a tool and, in parentheses, what its call looks like"),
        ("Bash(:*)", "must name a tool and, in parentheses, what its call looks like"),
        ("Bash(git *)", "only a final :* matches more words"),
        ("Bash(git*)", "only a final :* matches more words"),
        ("Bash(*.py)", "only a final :* matches more words"),
        ("Bash(git:*:*)", "only a final :* matches more words"),
        ("Bash(git:* log)", "only a final :* matches more words"),
        ("Bash(git log; rm:*)", "a prefix covers no chained command"),
        ("Bash(git log && rm:*)", "a prefix covers no chained command"),
        ("Bash(echo $(id):*)", "a prefix covers no chained command"),
        ("Bash(echo ${X}:*)", "a prefix covers no chained command"),
        ("Bash(a\nb:*)", "a prefix covers no chained command"),
    ],
)
def test_an_entry_of_an_invalid_form_is_e20(entry: str, problem: str) -> None:
    found = problem_of(entry)
    assert found.startswith(f"allow: {entry!r}")
    assert problem in found


@given(st.text("Bash(git:*) ;", max_size=12))
def test_any_text_is_an_entry_or_an_e20(entry: str) -> None:
    try:
        rules = ToolRules.parse({"allow": [entry], "deny": [entry]})
    except InvalidToolRulesError:
        return
    assert not decide_call(rules, BASH, {"command": "git"}).allowed
