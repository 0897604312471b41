"""Denied commands behind commands that run another command: the lists of ``docs/reference/tool-rules.md``."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.tool_rules import ToolFacts, ToolRules, commands, decide_call
from kantan_agents.tool_rules.wrappers import GIT, WRAPPERS, Wrapper, places_after
from tests.docs.pages import ROOT, Page

BASH = ToolFacts(("Bash",), "command")
PREFIX = ToolRules.parse({"deny": ["Bash(git push:*)"]})
EXACT = ToolRules.parse({"deny": ["Bash(git push)"]})
ALL_WRAPPERS = [pytest.param(wrapper, id=wrapper.names[0]) for wrapper in WRAPPERS]


def denied(command: str, rules: ToolRules = PREFIX) -> bool:
    return not decide_call(rules, BASH, {"command": command}).allowed


def written(options: tuple[str, ...]) -> str:
    return ", ".join(f"`{option}`" for option in options)


def documented(wrapper: Wrapper) -> str:
    behind = f", after {written(wrapper.code)}" if wrapper.code else ""
    return f"- {written(wrapper.names)}{behind}" + (f": {written(wrapper.valued)}" if wrapper.valued else "")


def listed_under(title: str) -> list[str]:
    section = Page(ROOT / "docs" / "reference" / "tool-rules.md").section("Commands that run another")
    return section.partition(f"\n{title}:\n\n")[2].partition("\n\n")[0].splitlines()


def test_the_lists_of_the_page_are_the_table_of_the_code() -> None:
    assert {wrapper.operands for wrapper in WRAPPERS} == {0, 1}
    by_option = [wrapper for wrapper in WRAPPERS if wrapper.code]
    assert listed_under("After an option") == [documented(wrapper) for wrapper in by_option]
    others = [wrapper for wrapper in WRAPPERS if not wrapper.code]
    for operands, title in enumerate(("After the options", "After the options and one word")):
        expected = [documented(wrapper) for wrapper in others if wrapper.operands == operands]
        assert listed_under(title) == expected
    section = Page(ROOT / "docs" / "reference" / "tool-rules.md").section("Commands that run another")
    assert f"The subcommand of `git` is found after {written(GIT.valued)}." in section


@pytest.mark.parametrize("wrapper", ALL_WRAPPERS)
def test_a_denied_command_is_found_behind_each_wrapper_and_each_of_its_options(wrapper: Wrapper) -> None:
    operands = " word" * wrapper.operands
    for name in wrapper.names:
        for code in wrapper.code or ("",):
            assert denied(f"{name}{operands} {code} git push")
            assert denied(f"/usr/bin/{name} -v{operands} {code} git push origin")
            for option in wrapper.valued:
                assert denied(f"{name} {option} value{operands} {code} git push")
                assert denied(f"{name} -v {option} sudo{operands} {code} /usr/bin/git push")
                assert denied(f"{name} {option}=value -v{operands} {code} 'git' push")
                if option.startswith("--"):
                    assert denied(f"{name} {option[:-1]} value{operands} {code} git push")
                elif "-v" not in wrapper.valued:
                    assert denied(f"{name} -v{option[1:]} value{operands} {code} git push")


@pytest.mark.parametrize("option", GIT.valued)
def test_a_denied_subcommand_of_git_is_found_behind_its_global_options(option: str) -> None:
    assert denied(f"git {option} value push")
    assert denied(f"sudo -u root git --no-pager {option} push push origin")
    assert not denied(f"git {option} value log push")


@given(
    st.lists(
        st.sampled_from(["sudo -u root", "env -u A", "timeout -s KILL 5", "nice -n 5", "exec -a x", "A=1"]),
        max_size=4,
    )
)
def test_wrappers_may_be_nested(wrappers: list[str]) -> None:
    before = " ".join(wrappers)
    assert denied(f"{before} git push")
    assert denied(f"true; {before} git -C . push", EXACT)
    assert not denied(f"{before} git log push")


@pytest.mark.parametrize(
    "command",
    [
        "trap 'git push' EXIT",
        "su -c 'git push'",
        "su - root -c'git push'",
        "su --command='git push' root",
        "env -S'git push'",
        "env --split-string='git push'",
        "bash -euo pipefail -c 'git push' name",
        "bash +O extglob -c 'git push'",
        "find . -exec true {} + -execdir sudo -u root git push {} ';'",
        "xargs -I {} -P 4 git push",
        "taskset -c 0,1 git push",
        "nice -10 git push",
        "sudo -nu root git push",
        "sudo -uroot git push",
        "sudo -u su -g env git push",
        "timeout $TIME git push",
        "sudo -p '' git push",
        "$SUDO git push",
        "${SUDO} git push",
        "git${IFS}push",
        "git $NOTHING push",
    ],
)
def test_a_denied_command_is_found_in_other_notations(command: str) -> None:
    assert denied(command)


@pytest.mark.parametrize(
    "command", ["trap 'git push' EXIT", "su -c 'git push' root", "sh -c 'git push' name"]
)
def test_an_exactly_denied_command_in_a_text_is_found_whatever_follows_the_text(command: str) -> None:
    assert denied(command, EXACT)
    assert not denied(command.replace("git", "echo git"), EXACT)


@pytest.mark.parametrize(
    ("entry", "command"),
    [
        ("docker push", "docker --context x push image"),
        ("docker compose down", "docker compose -f other.yml down"),
        ("kubectl delete", "kubectl -n prod delete pod x"),
        ("gh pr merge", "gh pr -R owner/name merge"),
        ("npm publish", "npm --prefix=x publish"),
        ("rm -rf", "rm -v -rf x"),
    ],
)
def test_options_may_precede_each_word_of_a_denied_command(entry: str, command: str) -> None:
    assert denied(command, ToolRules.parse({"deny": [f"Bash({entry}:*)"]}))


@pytest.mark.parametrize(
    "command", ["git $'push'", 'git $"push"', "$'git' push", "sudo -u root git $'push'", "gi$'t' push"]
)
def test_quotes_with_a_dollar_are_quotes(command: str) -> None:
    assert denied(command)


@pytest.mark.parametrize(
    "command",
    [
        "PATH=$PATH:/x git push",
        "env PATH=$HOME/bin:$PATH git push",
        "A=$(echo z)/y git push",
        "git -C $HOME/x push",
        "git -C $(echo .) push",
        "git -C `echo .` push",
        "git --git-dir=$(echo .)/.git push",
        "timeout $(echo 1)s git push",
        "timeout -k $(echo 1) 5s git push",
        "git -C x\\;y push",
        "git -C it\\'s push",
        "find . -exec git -C {} push \\;",
        "xargs -I {} git -C {} push",
        "echo $(git push)",
    ],
)
def test_what_the_shell_fills_in_may_be_part_of_a_word(command: str) -> None:
    assert denied(command)


@pytest.mark.parametrize(
    "command",
    [
        "sudo grep git push",
        "find . -name git push",
        "timeout 5 grep git push",
        "git --no-pager log push",
        "su git push",
    ],
)
def test_words_of_another_command_are_not_denied(command: str) -> None:
    assert not denied(command)


@pytest.mark.parametrize(
    "command",
    [
        "bash -c 'git -C \"a b\" push'",
        "ssh host \"git -C 'a b' push\"",
        "sh -euc 'git -C \"a b\" push'",
        "bash -o pipefail -c 'git -C \"a b\" push'",
        "bash -oc pipefail 'git push'",
        "env -S 'git -C \"a b\" push'",
        "env --split-string='git -C \"a b\" push'",
        "su - root -c'git -C \"a b\" push'",
        'bash -c "sh -c \'git -C \\"a b\\" push\'"',
        "bash -c 'git -C '\"'\"'a b'\"'\"' push'",
        "bash -c 'git -C '\\''a b'\\'' push'",
        "bash -c $'git -C \\'a b\\' push'",
        "sudo -p 'a b' bash -c 'git push'",
        "ssh -o 'ProxyCommand nc %h' host 'git -C \"a b\" push'",
        "ssh host sudo sh -c \\\"git -C \\'a b\\' push\\\"",
        "eval 'git -C \"a b\" push'",
        "eval 'git -C' '\"a b\"' push",
        "bash <<< 'git -C \"a b\" push'",
        "echo \"$(git -C 'a b' push)\"",
        'echo "$(git -C "$(dirname "$PWD") x" push)"',
        "git -C $(dirname $(pwd)) push",
        "echo \"`git -C 'a b' push`\"",
        "PATH=$PATH:/x bash -c 'git -C \"a b\" push'",
        "echo it\\'s; git -C 'a b' push",
        "git fetch # don't\ngit -C 'a b' push",
        "bash -c \"true # don't\ngit -C 'a b' push\"",
        "cd C:\\dir\\; git -C 'a b' push",
        "$X'git' -C 'a b' push",
    ],
)
def test_quotes_inside_quotes_keep_words_together(command: str) -> None:
    assert denied(command)
    assert not denied(command.replace("push", "log push"))


@given(
    st.lists(
        st.sampled_from(
            ["bash -c {}", "sh -euc {}", "eval {}", "ssh -p 22 host {}", "sudo -p 'a b' sh -c {}"]
        ),
        max_size=3,
    )
)
def test_shells_may_be_nested(shells: list[str]) -> None:
    command, other = "git -C 'a b' push", "git -C 'a b' log push"
    for shell in shells:
        command, other = (shell.format(shlex.quote(inner)) for inner in (command, other))
    assert denied(command)
    assert not denied(other)


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m 'use \"git push\"'",
        "bash -c 'echo \"git push\"'",
        "ssh host \"grep 'git push' file\"",
        "xargs grep \"git -C 'a b' push\"",
    ],
)
def test_quotes_inside_quotes_are_not_commands(command: str) -> None:
    assert not denied(command)


@pytest.mark.parametrize(
    "unit",
    ["'a b';", "$(a ", "bash -c \"'", "'\"'\"'", "sh ", "$'\\'", "$a >b ", "a;", "\\", "sudo -a1 "],
)
def test_the_readings_of_a_command_have_a_limit(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "MOST_READ", 10_000)
    text = f"'a b';{unit * 400}"
    read = sum(len(word) for reading in commands.readings(text) for word in reading.words)
    assert read <= 10_000 + 2 * len(text)


def test_a_command_with_too_many_readings_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "echo git push 'a b'"
    assert not denied(command)
    monkeypatch.setattr(commands, "MOST_READ", 100)
    assert denied(f"{command} ''")  # not the same text, which is cached
    assert not denied(command.replace("push", "pull"))


def test_words_that_differ_are_compared_with_the_table_once_for_each_kind() -> None:
    before = places_after.cache_info().misses
    options = " ".join(f"-a{number} --b{number} c{number}=d" for number in range(1_000))
    assert denied(f"sudo -u env -u nice -n timeout {options} 5 git push")
    assert places_after.cache_info().misses - before < 100


def test_long_words_are_read_like_short_ones() -> None:
    assert denied(f"sudo -p {'x' * 100} /{'a/' * 100}env -u {'y' * 100} git push")


@pytest.mark.parametrize(
    "command",
    [
        "X=push; git $X",
        "$(echo git) push",
        "gi$@t push",
        "git $'pu\\x73h'",
        "echo git push | bash",
        "parallel git ::: push",
        "git -c alias.p=push p",
        'python -c \'subprocess.run(["git", "push"])\'',
        "git rebase --exec 'git push'",
        "docker exec name git push",
        "git.exe push",
    ],
)
def test_the_commands_that_the_page_calls_not_covered_are_not(command: str) -> None:
    assert not denied(command)
