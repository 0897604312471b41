"""The sandbox: what a command in it can reach, and what is said when there is none."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError, SandboxUnavailableError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit.shell import ShellLimits, shell_tools
from kantan_agents.toolkit.shell.sandbox import find_sandbox
from tests.toolkit.calls import body, call

inside = pytest.mark.usefixtures("sandbox")


async def run(root: Path, command: str, **options: Any) -> str:
    return await call(shell_tools(root, sandbox="required", **options)[0], command=command)


@inside
async def test_home_directories_secrets_and_other_processes_are_hidden(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id").write_text("private")
    monkeypatch.setenv("HOME", str(tmp_path))
    hidden = [f"cat {tmp_path}/.ssh/id", "cat ~/.ssh/id", "cat /etc/shadow", "cat /root/.bashrc", "ls /run"]
    result = await run(root, "; ".join([*hidden, "cd /proc; ls -d [0-9]*"]))
    assert "private" not in result
    assert result.count("No such file or directory") == len(hidden)
    assert len([line for line in body(result).splitlines() if line.isdigit()]) < 5


@inside
async def test_only_the_root_and_a_temporary_directory_can_be_written(root: Path) -> None:
    places = (
        "/usr/x",
        "/etc/x",
        "/x",
        "/var/x",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/core_pattern",
    )
    command = "; ".join(f"echo a >> {place}" for place in (*places, "kept", "/tmp/x"))
    result = await run(root, command)
    assert body(result).count("Read-only file system") == len(places)
    assert (root / "kept").read_text() == "a\n"


@inside
async def test_the_root_is_read_only_if_it_is_not_to_be_written(root: Path) -> None:
    (root / "file").write_text("before")
    result = await run(root, "cat file; echo after > file; rm -f file; echo x > new", write=False)
    assert "before" in result
    assert result.count("Read-only file system") == 3
    assert (root / "file").read_text() == "before"


@inside
async def test_links_do_not_lead_out_of_the_sandbox(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("private")
    (root / "link").symlink_to(tmp_path / "secret")
    assert "private" not in await run(root, "cat link")


@inside
@pytest.mark.parametrize("network", [True, False])
async def test_the_network_is_reached_only_if_it_is_asked_for(root: Path, *, network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = await run(root, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached", network=network)
    assert ("reached" in body(result).splitlines()) == network
    assert ("with network" in result) == network


@inside
async def test_further_paths_can_be_made_readable(root: Path, tmp_path: Path) -> None:
    data = tmp_path / "shared" / "data"
    data.parent.mkdir()
    data.write_text("shown")
    result = await run(root, f"cat {data}; echo x > {data}", readable=[data.parent])
    assert "shown" in result
    assert data.read_text() == "shown"


@inside
async def test_temporary_files_last_for_a_run_and_no_longer(root: Path) -> None:
    def step(command: str, number: int) -> list[Any]:
        return [function_call("Bash", {"command": command}, call_id=str(number))]

    tools = shell_tools(root, sandbox="required", approval=False)
    for _ in range(2):  # the second run must not see the file of the first
        steps = [step("cat /tmp/x; echo kept > /tmp/x", 1), step("cat $TMPDIR/x", 2)]
        model = ScriptedModel([*steps, [assistant_message("Done.")]])
        context = await Agent("a", "x", model=model, tools=tools).run_async("Go")
        items = context["result"].new_items
        first, second = (item.output for item in items if item.type == "tool_call_output_item")
        assert "No such file" in first
        assert body(second) == "kept\n"


@inside
@pytest.mark.parametrize("base", ["/var/tmp", "/dev/shm"])
async def test_a_project_may_be_where_the_sandbox_has_a_directory_of_its_own(base: str) -> None:
    with tempfile.TemporaryDirectory(dir=base, prefix="a b\n'é") as project:
        assert "made" in await run(Path(project), "echo made > file; cat file")
        assert (Path(project) / "file").read_text() == "made\n"


@inside
async def test_the_tool_describes_the_sandbox_to_the_model(root: Path) -> None:
    model = ScriptedModel([[assistant_message("Done.")]])
    bash = shell_tools(root, sandbox="required", write=False)[0]
    assert "The result says whether there is a sandbox." in bash.description
    await Agent("a", "x", model=model, tools=[bash]).run_async("Go")
    (shown,) = model.calls[0].tools
    assert "Sandbox: bubblewrap, no network, the project is read-only" in shown.description


def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


async def test_without_a_sandbox_the_tool_and_the_result_say_so(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without_bubblewrap(monkeypatch, tmp_path)
    model = ScriptedModel([[assistant_message("Done.")]])
    bash = shell_tools(root)[0]
    await Agent("a", "x", model=model, tools=[bash]).run_async("Go")
    assert "There is no sandbox" in model.calls[0].tools[0].description
    assert "No sandbox." in await call(bash, command="true")


@pytest.mark.parametrize("broken", [False, True])
async def test_a_required_sandbox_that_is_missing_or_broken_ends_the_run_before_the_model_is_asked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, broken: bool
) -> None:
    without_bubblewrap(monkeypatch, tmp_path)
    if broken:
        program = tmp_path / "empty" / "bwrap"
        program.write_text("#!/bin/sh\necho no namespaces here >&2\nexit 1\n")
        program.chmod(0o755)
    model = ScriptedModel([[function_call("Bash", {"command": "touch ran"}, call_id="1")]])
    bash = shell_tools(root, sandbox="required", approval=False)[0]
    with pytest.raises(SandboxUnavailableError, match="no namespaces here" if broken else "not installed"):
        await Agent("a", "x", model=model, tools=[bash]).run_async("Go")
    assert not model.calls
    assert "[E168]" in await call(bash, command="touch ran")
    assert not (root / "ran").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sandbox": "yes"}, 'sandbox: must be "auto", "required" or "off"'),
        ({"write": False}, 'write=False: needs sandbox="required"'),
        ({"limits": {"seconds": 3}}, "limits: must be ShellLimits, not dict"),
        ({"env": {"A=B": "c"}}, "env: 'A=B' is not the name of a variable"),
        ({"env": {"A": 1}}, "env: the value of A must be a str"),
        ({"env": ["A"]}, "env: must be a mapping"),
        ({"readable": "/x"}, "readable: must be a list"),
        ({"approval": 1}, "approval: must be True or False"),
        ({"network": None}, "network: must be True or False"),
    ],
)
def test_wrong_options_are_refused(root: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        shell_tools(root, **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("given", ["/", "missing", "file", 3])
def test_a_root_that_is_no_directory_of_a_project_is_refused(tmp_path: Path, given: Any) -> None:
    (tmp_path / "file").touch()
    path = given if given in ("/", 3) else tmp_path / given
    with pytest.raises(InvalidOptionError, match="root"):
        shell_tools(path)


@pytest.mark.parametrize(
    "limits",
    [{"seconds": 0}, {"seconds": 700}, {"processes": 0}, {"memory_bytes": 1.5}, {"background_shells": -1}],
)
def test_wrong_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(limits))):
        ShellLimits(**limits)


def test_trying_it_leaves_nothing_in_the_root(tmp_path: Path) -> None:
    find_sandbox(str(tmp_path), "/bin/sh", writes=True, network=False, readable=())
    assert list(tmp_path.iterdir()) == []
