"""One hook as a process: what its end means, what it gets, and that nothing of it goes on."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from kantan_agents.cli.hooks.hook import Hook
from kantan_agents.cli.hooks.hooks import HookOutcome, run_hook
from tests.toolkit.calls import until


async def run(
    command: str, given: bytes = b"{}", seconds: float = 20, cwd: Any = "/", **env: str
) -> HookOutcome:
    hook = Hook("hooks.Stop[0].hooks[0]", "Stop", re.compile(""), command, seconds)
    return await run_hook(hook, given, str(cwd), {"PATH": "/usr/bin:/bin", **env})


@pytest.mark.parametrize(
    ("command", "stdout", "objection", "fault"),
    [
        ("echo ' more '; echo no >&2", "more", None, None),
        ("echo out; echo ' not so ' >&2; exit 2", "", "not so", None),
        ("exit 2", "", "it gave no reason", None),
        ("echo why >&2; exit 1", "", None, "exit code 1: why"),
        ("exit 3", "", None, "exit code 3"),
        ("kill -9 $$", "", None, "exit code -9"),
        ("printf '\\377' >&2; exit 2", "", "\ufffd", None),
        ("no-such-program-here 2>/dev/null", "", None, "exit code 127"),
    ],
)
async def test_the_exit_code_decides(
    command: str, stdout: str, objection: str | None, fault: str | None
) -> None:
    outcome = await run(command)
    assert (outcome.stdout, outcome.objection, outcome.fault) == (stdout, objection, fault)


async def test_what_the_shell_cannot_read_never_passes() -> None:
    outcome = await run("'")
    assert outcome.objection or outcome.fault


async def test_a_decision_as_json_is_a_fault_because_it_would_have_no_effect() -> None:
    deny = '{"hookSpecificOutput": {"permissionDecision": "deny"}}'
    outcome = await run(f"echo '{deny}'")
    assert outcome.fault == "it printed a decision as JSON, but only its exit code decides"
    assert (await run(f"echo '{deny}'; echo no >&2; exit 2")).objection == "no"
    assert (await run("cat", b'{"tool_name": "Bash"}')).stdout == '{"tool_name": "Bash"}'


async def test_values_come_on_standard_input_only(tmp_path: Path) -> None:
    nasty = json.dumps({"tool_input": {"command": "$(touch made); `touch made` '; touch made #"}}).encode()
    outcome = await run("cat; ps -o args= -p $$ 2>/dev/null; env", nasty, cwd=tmp_path, KEY="value")
    assert outcome.stdout.startswith(nasty.decode())
    assert outcome.stdout.count("touch made") == 3
    assert "KEY=value" in outcome.stdout and "HOME=" not in outcome.stdout
    assert not (tmp_path / "made").exists()


async def test_it_need_not_read_what_it_gets() -> None:
    assert (await run("exit 2", b"x" * 3_000_000)).objection == "it gave no reason"
    assert (await run("exec 0<&-; sleep 0.05; echo read nothing", b"x" * 3_000_000)).stdout == "read nothing"


async def test_one_that_ends_just_before_it_is_sent_anything_leaves_no_error_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop of anyio's tests raises what is reported to it when the garbage is collected."""
    write = asyncio.StreamWriter.write

    def late(self: asyncio.StreamWriter, data: bytes) -> None:
        process = self._protocol._transport  # type: ignore[attr-defined]
        with suppress(ChildProcessError):  # its exit is known already
            if process is not None:
                os.waitid(os.P_PID, process.get_pid(), os.WEXITED | os.WNOWAIT)
        write(self, data)

    monkeypatch.setattr(asyncio.StreamWriter, "write", late)
    assert (await run("exit 2")).objection == "it gave no reason"
    await anyio.lowlevel.checkpoint()
    gc.collect()


async def test_a_folder_that_is_gone_is_a_fault(tmp_path: Path) -> None:
    outcome = await run("true", cwd=tmp_path / "missing")
    assert outcome.fault is not None and outcome.fault.startswith("it cannot be started: ")
    assert (await run("true\0")).fault is not None


def is_gone(child: Path) -> bool:
    """Whether the process whose id a file has is gone, or waits for its parent to notice."""
    if not child.exists() or not child.read_text().strip():
        return False
    try:
        status = Path(f"/proc/{child.read_text().strip()}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


CHILD = "sh -c 'echo $$ > child; exec sleep 1000' & wait"


async def test_what_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    outcome = await run(CHILD, seconds=0.2, cwd=tmp_path)
    assert outcome.fault == "it took more than 0.2 seconds"
    await until(lambda: is_gone(tmp_path / "child"))


async def test_a_cancellation_kills_it_with_its_children(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run(f"trap '' TERM INT; {CHILD}", cwd=tmp_path))
        await until((tmp_path / "child").exists)
        group.cancel_scope.cancel()
    await until(lambda: is_gone(tmp_path / "child"))


async def test_a_flood_ends_it(tmp_path: Path) -> None:
    for target in ("", ">&2"):
        outcome = await run(f"yes {target}", cwd=tmp_path)
        assert outcome.fault == "it wrote more than 30000 bytes"


async def test_what_it_leaves_in_the_background_does_not_hold_it(tmp_path: Path) -> None:
    outcome = await run("sleep 5 & echo $! > child; echo done; exit 2", cwd=tmp_path)
    assert outcome.objection == "it gave no reason"
    os.kill(int((tmp_path / "child").read_text()), 9)
