"""Commands: what they print, what ends them, and that none of their processes is left."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from agents import FunctionTool
from blockbuster import blockbuster_ctx

from kantan_agents.toolkit.shell import ShellLimits, command, shell_tools
from tests.toolkit.calls import body, call, processes_with, until

QUICK = ShellLimits(grace_seconds=0.2)


@pytest.fixture(params=["off", "auto"])
def place(request: pytest.FixtureRequest, has_sandbox: bool) -> Any:
    if request.param == "auto" and not has_sandbox:
        pytest.skip("the same as without a sandbox")
    return request.param


def bash(root: Path, place: Any = "off", limits: ShellLimits = QUICK, **options: Any) -> FunctionTool:
    return shell_tools(root, sandbox=place, limits=limits, **options)[0]


async def test_a_command_runs_in_the_root_and_returns_both_outputs_and_its_exit_code(
    root: Path, place: Any
) -> None:
    result = await call(bash(root, place), command="pwd; echo problem >&2; echo made > file; exit 3")
    assert result.startswith("Exit code 3. ")
    assert body(result) == f"{root}\nproblem\n"
    assert (root / "file").read_text() == "made\n"


async def test_the_result_says_whether_there_was_a_sandbox(root: Path, place: Any) -> None:
    first = (await call(bash(root, place), command="true")).partition("\n")[0]
    assert ("No sandbox." in first) == (place == "off")
    assert ("Sandbox: bubblewrap, no network." in first) == (place == "auto")


async def test_a_command_has_no_input_and_no_terminal(root: Path, place: Any) -> None:
    result = await call(bash(root, place), command="cat; test -t 0 || echo none; : </dev/tty")
    assert "none" in result
    assert "Exit code 1." in result


@pytest.mark.parametrize(
    "left",
    ["sleep {mark} &", "(setsid sleep {mark} &)", "trap '' TERM HUP INT\nsleep {mark} &\ndisown -a"],
)
async def test_processes_that_hold_the_output_after_the_command_are_ended_with_it(
    root: Path, place: Any, mark: str, left: str
) -> None:
    with anyio.fail_after(60):
        result = await call(bash(root, place), command=f"{left.format(mark=mark)}\necho begun")
    assert "Exit code 0." in result
    assert body(result) == "begun\n"
    assert processes_with(mark) == []


async def test_processes_left_behind_are_counted(root: Path, mark: str) -> None:
    result = await call(bash(root), command=f"sleep {mark} & sleep {mark} & echo begun")
    assert "2 processes that it left behind were ended." in result


async def test_a_flood_of_output_ends_the_command_and_keeps_little(root: Path, place: Any) -> None:
    limits = ShellLimits(printed_bytes=5_000_000, output_bytes=4096)
    result = await call(bash(root, place, limits), command="yes flood")
    assert "it printed more than 4.768 MiB" in result
    assert len(result) < 4096 + 300


async def test_of_long_output_the_beginning_and_the_end_are_shown(root: Path) -> None:
    result = body(await call(bash(root, limits=ShellLimits(output_bytes=2048)), command="seq 1 100000"))
    assert result.startswith("1\n2\n3\n")
    assert result.endswith("\n99999\n100000\n")
    assert "\n[... 586,847 bytes are not shown ...]\n" in result
    assert len(result) < 2048 + 100


async def test_a_command_that_takes_too_long_is_ended_and_shows_what_it_printed(
    root: Path, place: Any, mark: str
) -> None:
    result = await call(bash(root, place), command=f"echo before; sleep {mark}", timeout=1500)
    assert "The command was ended: it took longer than 1.5 s." in result
    assert "before" in result
    assert processes_with(mark) == []


async def test_a_command_may_end_by_itself_when_it_is_asked_to(root: Path, place: Any) -> None:
    line = "trap 'echo goodbye; exit 0' TERM; echo hello; while true; do sleep 0.02; done"
    slow = ShellLimits(grace_seconds=60)
    with anyio.fail_after(50):
        result = await call(bash(root, place, slow), command=line, timeout=2500)
    assert "goodbye" in result


async def test_a_command_that_ignores_the_request_to_end_is_killed(root: Path, place: Any, mark: str) -> None:
    line = f"trap '' TERM; echo deaf; sleep {mark}; sleep {mark}; sleep {mark}"
    result = await call(bash(root, place), command=line, timeout=400)
    assert "it took longer than 0.4 s" in result
    assert processes_with(mark) == []


@pytest.mark.parametrize("times", [1, 3])
async def test_a_cancelled_call_has_ended_its_processes_when_it_returns(
    root: Path, place: Any, mark: str, times: int
) -> None:
    task = asyncio.create_task(call(bash(root, place), command=f"trap '' TERM; touch begun; sleep {mark}"))
    await until((root / "begun").exists)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(mark) == []


async def test_a_call_that_is_cancelled_before_its_command_has_begun_leaves_nothing(
    root: Path, mark: str
) -> None:
    tool = bash(root)
    await call(tool, command="true")
    for steps in range(12):
        task = asyncio.create_task(call(tool, command=f"sleep {mark}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert processes_with(mark) == []


def test_the_end_of_the_event_loop_ends_commands_in_the_background(root: Path, mark: str) -> None:
    async def main() -> None:
        await call(bash(root), command=f"touch begun; sleep {mark}", run_in_background=True)
        await until((root / "begun").exists)

    asyncio.run(main())
    gc.collect()
    assert processes_with(mark) == []


async def test_one_process_cannot_take_more_memory_than_the_limit(root: Path, place: Any) -> None:
    limits = ShellLimits(memory_bytes=200 * 1024 * 1024)
    line = "python3 -c 'bytearray(400 * 1024 * 1024)'"
    assert "MemoryError" in await call(bash(root, place, limits), command=line)


async def test_processes_that_take_more_memory_together_are_ended(root: Path, mark: str) -> None:
    limits = ShellLimits(memory_bytes=150 * 1024 * 1024)
    one = f"python3 -c 'x = b\"x\" * (60 * 1024 * 1024); import time; time.sleep({mark})'"
    result = await call(bash(root, limits=limits), command=f"{one} & {one} & {one} & {one}")
    assert "it used more than 150 MiB of memory" in result


async def test_a_command_that_computes_too_long_is_ended(root: Path, place: Any) -> None:
    result = await call(bash(root, place, ShellLimits(cpu_seconds=1)), command="while :; do :; done")
    assert "it used more than 1 s of CPU time" in result or "(SIGXCPU)" in result or "Exit code 152" in result


async def test_a_command_with_too_many_processes_is_ended(root: Path, place: Any, mark: str) -> None:
    line = f"for i in $(seq 1 40); do sleep {mark} & done; wait"
    result = await call(bash(root, place, ShellLimits(processes=20)), command=line)
    assert "it had more than 20 processes" in result
    assert processes_with(mark) == []


async def test_processes_that_double_are_ended(root: Path, place: Any, mark: str) -> None:
    # Eight times at most: one without a limit could use up the processes of the machine before it is noticed.
    twice = "{ double $(($1 + 1)) & double $(($1 + 1)) & }"
    line = f"double() {{ [ $1 -gt 8 ] || {twice}; sleep {mark}; }}; double 1"
    result = await call(bash(root, place, ShellLimits(processes=100)), command=line)
    assert "it had more than 100 processes" in result
    assert processes_with(mark) == []


async def test_a_signal_that_ends_the_shell_is_named(root: Path) -> None:
    assert "ended by signal 9 (SIGKILL)" in await call(bash(root), command="kill -9 $$")


async def test_a_command_that_kills_the_process_that_watches_it_is_ended(root: Path, mark: str) -> None:
    result = await call(bash(root), command=f"kill -9 $PPID; sleep {mark}")
    assert "the process that watches it was killed" in result
    assert processes_with(mark) == []


@pytest.mark.parametrize("escape", ["setsid sleep {mark} &", "(setsid sleep {mark} &)", "sleep {mark} &"])
async def test_what_has_left_the_session_before_that_is_ended_too(root: Path, mark: str, escape: str) -> None:
    result = await call(bash(root), command=f"{escape.format(mark=mark)}\nkill -9 $PPID; sleep {mark}")
    assert "the process that watches it was killed" in result
    assert processes_with(mark) == []


async def test_a_command_that_stops_the_process_that_watches_it_is_ended_in_time(
    root: Path, mark: str
) -> None:
    line = f"(setsid sleep {mark} &); kill -STOP $PPID; sleep {mark}"
    with anyio.fail_after(60):
        result = await call(bash(root), command=line, timeout=300)
    assert "it took longer than 0.3 s" in result
    assert processes_with(mark) == []


async def test_a_command_that_stops_that_process_again_and_again_is_ended_all_the_same(
    root: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_PATIENCE_SECONDS", 0.3)
    stopping = "trap '' TERM; while :; do kill -STOP $PPID; done"
    line = f"(setsid sleep {mark} &); (trap '' TERM; sleep {mark}) & {stopping}"
    with anyio.fail_after(60):
        result = await call(bash(root), command=line, timeout=300)
    # Which of both comes first is the machine's to say, and the limit is why it was ended in any case.
    assert "The command was ended: it took longer than 0.3 s." in result
    assert processes_with(mark) == []


async def test_a_root_that_is_gone_is_an_error_for_the_model(root: Path) -> None:
    tool = bash(root)
    root.rmdir()  # noqa: ASYNC240
    assert "[E167] No command can be run: " in await call(tool, command="true")


async def test_output_that_is_not_text_becomes_text(root: Path) -> None:
    result = body(await call(bash(root), command=r"printf 'a\0b\377c'"))
    assert result == "a\ufffdb\ufffdc"


async def test_many_commands_at_once_do_not_mix_their_outputs(root: Path) -> None:
    tool = bash(root)
    results: dict[int, str] = {}

    async def one(number: int) -> None:
        results[number] = body(await call(tool, command=f"for i in 1 2 3; do echo {number}; done"))

    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(one, number)
    assert results == {number: f"{number}\n" * 3 for number in range(12)}


async def test_nothing_blocks_the_event_loop(root: Path, place: Any, mark: str) -> None:
    run, read, kill = shell_tools(root, sandbox=place, limits=QUICK)
    with blockbuster_ctx():
        assert "hello" in await call(run, command="echo hello")
        begun = await call(run, command=f"sleep {mark}", run_in_background=True)
        shell = begun.split(" as ")[1].split(",")[0]
        assert "Running." in await call(read, bash_id=shell, filter="a+")
        assert f"{shell} is ended" in await call(kill, shell_id=shell)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, '"command" is a required property'),
        ({"command": ""}, "command: "),
        ({"command": 3}, "command: 3 is not of type"),
        ({"command": "a\0b"}, "no NUL"),
        ({"command": "x" * 100_001}, "at most 100,000 bytes"),
        ({"command": "true", "timeout": 0}, "timeout: "),
        ({"command": "true", "timeout": 600_001}, "timeout: 600001 is greater than the maximum"),
        ({"command": "true", "cwd": "/"}, "'cwd' was unexpected"),
        ({"command": "true", "run_in_background": "yes"}, "run_in_background: "),
    ],
)
async def test_wrong_arguments_are_explained_and_run_nothing(
    root: Path, arguments: dict[str, Any], reason: str
) -> None:
    result = await call(bash(root), **arguments)
    assert result.startswith("[kantan-agents][E10]")
    assert reason in result


async def test_null_stands_for_an_argument_that_is_left_out(root: Path) -> None:
    tool = bash(root)
    arguments = json.dumps({"command": "echo hi", "timeout": None, "description": None})
    assert "hi" in await tool.on_invoke_tool(None, arguments)  # type: ignore[arg-type]
