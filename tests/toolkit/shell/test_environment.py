"""What a command sees of the process that runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kantan_agents.toolkit.shell import shell_tools
from tests.toolkit.calls import body, call

# What a shell sets by itself, and the mark of a command.
OWN = {"KANTAN_AGENTS_COMMAND", "PWD", "OLDPWD", "SHLVL", "_"}


async def names(root: Path, **options: object) -> dict[str, str]:
    tool = shell_tools(root, sandbox="off", **options)[0]  # type: ignore[arg-type]
    lines = body(await call(tool, command="env -0 | tr '\\0' '\\n'")).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


async def test_no_variable_of_this_process_is_passed_but_the_harmless_ones(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "BASH_ENV",
        "BASH_FUNC_ls%%",
        "IFS",
    ):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("TZ", "UTC")
    seen = await names(root)
    assert "secret" not in seen.values()
    allowed = {"PATH", "HOME", "LANG", "LANGUAGE", "LOGNAME", "TERM", "TMPDIR", "TZ", "USER"}
    assert {name for name in seen if not name.startswith("LC_")} <= allowed | OWN
    assert seen["LC_TIME"] == "C"
    assert seen["TZ"] == "UTC"


async def test_variables_of_the_caller_are_passed_and_win(root: Path) -> None:
    seen = await names(root, env={"TOKEN": "given", "LANG": "ja_JP.UTF-8"})
    assert seen["TOKEN"] == "given"
    assert seen["LANG"] == "ja_JP.UTF-8"


async def test_no_open_file_of_this_process_is_passed(root: Path, tmp_path: Path) -> None:
    tool = shell_tools(root, sandbox="off")[0]
    with (tmp_path / "open").open("w") as file:
        listed = body(await call(tool, command="ls -l /proc/self/fd"))
    assert str(file.name) not in listed
    assert listed.count("->") == 4  # three streams, and the directory that ls reads
