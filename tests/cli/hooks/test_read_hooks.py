"""The file of hooks is the user's own: nothing of a project, and nothing that others can write, is used."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.hooks.read_hooks import HooksFile, read_hooks
from kantan_agents.cli.terminal.protect_used import protect_used
from kantan_agents.errors import HooksFileError
from kantan_agents.toolkit.protected import why_protected
from kantan_agents.toolkit.shell import shell_tools
from kantan_agents.toolkit.shell.sandbox import find_sandbox
from tests.toolkit.calls import call

from .conftest import Configure, group


def script(folder: Path, name: str = "guard.py") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("")
    path.chmod(0o644)
    return path


def refused(root: Path) -> str:
    with pytest.raises(HooksFileError) as caught:
        read_hooks(os.path.realpath(root))
    assert "pass --no-hooks" in str(caught.value)
    return "; ".join(caught.value.problems)


def test_without_a_file_there_are_no_hooks(work: Path) -> None:
    assert read_hooks(str(work)) is None


def test_a_file_without_hooks_has_none(work: Path, configure: Configure) -> None:
    configure()
    assert read_hooks(str(work)) is None


def test_the_hooks_of_the_users_directory_are_read(work: Path, own: Path, configure: Configure) -> None:
    script(own)
    path = configure(PreToolUse=[group("python3 guard.py", "Bash", timeout=5)], Stop=[group("./done")])
    file = read_hooks(str(work))
    assert isinstance(file, HooksFile)
    assert (file.path, file.folder) == (path, own)
    assert [(one.event, one.matcher.pattern, one.command, one.seconds) for one in file.hooks] == [
        ("PreToolUse", "Bash", "python3 guard.py", 5),
        ("Stop", "", "./done", 60),
    ]


def test_a_file_of_the_project_is_never_read(work: Path) -> None:
    for folder in (".", ".kantan_agents", ".config/kantan_agents", ".claude"):
        script(work / folder, "hooks.json").write_text('{"hooks": 1}')
        script(work / folder, "settings.json").write_text('{"hooks": {"Stop": 1}}')
    assert read_hooks(str(work)) is None


@pytest.mark.parametrize("variable", ["KANTAN_AGENTS_CONFIG_DIR", "XDG_CONFIG_HOME"])
def test_a_variable_cannot_make_a_folder_of_the_project_the_users(
    work: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(work / "settings"))
    folder = work / "settings" / ("kantan_agents" if variable.startswith("XDG") else "")
    script(folder, "hooks.json").write_text('{"hooks": {"Stop": []}}')
    assert f"you work in {work}" in refused(work)
    (work / "sub").mkdir()
    monkeypatch.chdir(work / "sub")  # the repository above counts as well
    assert f"you work in {work}" in refused(work / "sub")
    monkeypatch.setenv(variable, "settings")  # a relative one counts as unset
    assert read_hooks(str(work)) is None


def test_hooks_are_not_used_where_their_own_folder_is_worked_in(
    work: Path, own: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(Stop=[group("true")])
    (own / "sub").mkdir()
    assert "it is in" in refused(own)
    assert "it is in" in refused(own / "sub")
    monkeypatch.chdir(own)
    assert "it is in" in refused(own)


def test_they_are_used_and_protected_where_the_home_folder_is_worked_in(
    work: Path, own: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(own)
    configure(PreToolUse=[group("python3 guard.py")])
    home = work.parent / "home"
    monkeypatch.chdir(home)
    assert read_hooks(str(home)) is not None
    for name in ("hooks.json", "guard.py", "json.py"):
        assert why_protected(str(home), (".config", "kantan_agents", name))


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_file_that_others_may_write_is_refused(
    work: Path, own: Path, configure: Configure, mode: int
) -> None:
    path = configure(PreToolUse=[group("python3 guard.py")])
    script(own).chmod(mode)
    assert refused(work).startswith(
        f"hooks.PreToolUse[0].hooks[0]: others may write to {own}/guard.py; run chmod"
    )
    (own / "guard.py").chmod(0o644)
    path.chmod(mode)
    assert f"others may write to {path}; run chmod go-w {path}" in refused(work)
    path.chmod(0o644)
    own.chmod(0o777)
    assert f"others may write to {own}" in refused(work)
    own.chmod(0o755)
    assert read_hooks(str(work)) is not None


def test_a_file_of_another_user_is_refused(
    work: Path, own: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = configure(Stop=[group("true")])
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    if path.stat().st_uid:  # files of root are nobody else's
        assert f"{path} belongs to another user" in refused(work)
    else:
        assert read_hooks(str(work)) is not None


def test_a_link_into_the_project_is_refused(work: Path, own: Path, configure: Configure) -> None:
    theirs = script(work, "hooks.json")
    (own / "hooks.json").symlink_to(theirs)
    assert f"{theirs} is in the folder that you work in; move it to {own}" in refused(work)
    (own / "hooks.json").unlink()
    configure(PreToolUse=[group("./guard.py")])
    (own / "guard.py").symlink_to(script(work))
    assert f"hooks.PreToolUse[0].hooks[0]: {work}/guard.py is in the folder" in refused(work)


@pytest.mark.parametrize(
    "command",
    [
        "{work}/guard.py",
        "python3 '{work}/guard.py' --strict",
        "true;python3 {work}/guard.py|cat",
        "python3 $KANTAN_AGENTS_PROJECT_DIR/guard.py",
        'python3 "${{KANTAN_AGENTS_PROJECT_DIR}}/guard.py"',
        "python3 ../../../work/guard.py",
        "python3 ~/../work/guard.py",
        "python3 $HOME/../work/guard.py # '",
    ],
)
def test_a_command_that_names_a_file_of_the_project_is_refused(
    work: Path, configure: Configure, command: str
) -> None:
    script(work)
    configure(PreToolUse=[group(command.format(work=work))])
    assert f"{work}/guard.py is in the folder that you work in" in refused(work)


def test_a_script_elsewhere_is_used_and_protected(work: Path, configure: Configure) -> None:
    bin_ = work.parent / "home/bin"
    script(bin_)
    configure(PreToolUse=[group("python3 ~/bin/guard.py")])
    assert read_hooks(str(work)) is not None
    # An agent of a module may have tools for other folders than those of the command.
    assert why_protected(str(work.parent / "home"), ("bin", "guard.py"))
    assert why_protected(str(bin_), ("guard.py",))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "it is not JSON: "),
        (b"\xff", "it is not JSON: "),
        (b"[" * 100_000, "it is not JSON: "),
        (b" " * 1_048_577, "it is not a regular file of at most 1048576 bytes"),
        (b'{"hooks": {"Stop": [], "Stop": []}}', "'Stop' appears several times in an object"),
        (b'{"hooks": 3}', "hooks: "),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    work: Path, configure: Configure, content: bytes, problem: str
) -> None:
    configure().write_bytes(content)
    assert problem in refused(work)


def test_what_is_not_a_file_is_an_error(work: Path, own: Path) -> None:
    path = own / "hooks.json"
    path.mkdir()
    assert "it is not a regular file" in refused(work)
    path.rmdir()
    os.mkfifo(path, 0o600)
    assert "it is not a regular file" in refused(work)
    path.unlink()
    path.symlink_to(own / "missing")
    assert "No such file" in refused(work)


def test_on_windows_they_are_an_error(
    work: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(Stop=[group("true")])
    module: Any = read_hooks.__globals__["os"]

    class Windows:
        name = "nt"

        def __getattr__(self, attribute: str) -> Any:
            if attribute == "geteuid":
                raise AttributeError(attribute)
            return getattr(module, attribute)

    monkeypatch.setitem(read_hooks.__globals__, "os", Windows())
    with pytest.raises(HooksFileError, match="hooks need Linux or macOS"):
        read_hooks(str(work))


async def test_a_command_in_the_sandbox_cannot_change_them_where_the_home_folder_is_its_folder(
    work: Path, own: Path, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = work.parent / "home"
    if isinstance(find_sandbox(str(home), "/bin/sh", writes=True, network=False, readable=()), str):
        pytest.skip("no sandbox here")
    elsewhere = script(home / "bin")
    script(own)
    configure(PreToolUse=[group("python3 guard.py"), group("./other")])
    monkeypatch.chdir(home)
    read_hooks(str(home))
    protect_used([elsewhere], has_tools=True)
    (bash, *_) = shell_tools(home, sandbox="required")
    for target in (".config/kantan_agents/hooks.json", ".config/kantan_agents/guard.py", "bin/guard.py"):
        await call(bash, command=f"echo changed > {target}; rm -f {target}; ln -sf /bin/true {target}")
        assert "changed" not in (home / target).read_text()
        assert not (home / target).is_symlink()
    await call(bash, command="touch .config/kantan_agents/other; mv .config moved; echo ok > ok.txt")
    assert not (own / "other").exists() and (own / "hooks.json").exists()
    assert (home / "ok.txt").exists()
