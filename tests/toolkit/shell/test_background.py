"""Commands in the background, and their end with the run."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from agents import FunctionTool
from anyio import to_thread

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit.shell import ShellLimits, shell_tools
from tests.programs import Preloaded
from tests.toolkit.calls import call, processes_with, until


def asked(name: str, **arguments: Any) -> list[Any]:
    return [function_call(name, arguments, call_id=f"{name}{sorted(arguments.items())}")]


def agent_of(root: Path, *steps: Any, approval: bool = False, beside: Any = (), **options: Any) -> Agent:
    tools = [*shell_tools(root, sandbox="off", approval=approval, **options), *beside]
    return Agent("worker", "Work.", model=ScriptedModel(list(steps)), tools=tools)


def results(context: dict[str, Any]) -> list[str]:
    return [item.output for item in context["result"].new_items if item.type == "tool_call_output_item"]


def approved(context: dict[str, Any]) -> Any:
    """Return the state of a paused run in which everything that waits is approved."""
    state = context["result"].to_state()
    for waiting in context["result"].interruptions:
        state.approve(waiting)
    return state


async def begin(tool: FunctionTool, command: str) -> str:
    """Start a command in the background outside of a run and return its id."""
    begun = await call(tool, command=command, run_in_background=True)
    found = re.fullmatch(r"Running in the background as (bash_[0-9a-f]{16}), for at most .*", begun)
    assert found is not None, begun
    return found[1]


async def test_output_is_read_as_it_comes_and_only_once(root: Path) -> None:
    run, read, kill = shell_tools(root, sandbox="off")
    line = "echo one; touch first; until [ -e go ]; do sleep 0.01; done; echo two; touch second; sleep 1000"
    shell = await begin(run, line)
    await until((root / "first").exists)
    assert await call(read, bash_id=shell) == "Running.\none\n"
    assert await call(read, bash_id=shell) == "Running.\nNo output."
    (root / "go").touch()
    await until((root / "second").exists)
    assert await call(read, bash_id=shell) == "Running.\ntwo\n"
    assert await call(kill, shell_id=shell) == (
        f"{shell} is ended, with all of its processes. Its last output can be read with BashOutput."
    )
    assert await call(kill, shell_id=shell) == f"{shell} had already ended."


async def test_a_filter_returns_only_lines_that_match_and_takes_linear_time(root: Path) -> None:
    run, read, _ = shell_tools(root, sandbox="off")
    shell = await begin(run, "seq 1 20; touch done; sleep 1000")
    await until((root / "done").exists)
    assert await call(read, bash_id=shell, filter="^1?5$") == "Running.\n5\n15"
    shell = await begin(run, f"echo {'a' * 5000}b; touch again; sleep 1000")
    await until((root / "again").exists)
    assert await call(read, bash_id=shell, filter="^(a+)+$") == "Running.\nNo output."


async def test_a_filter_that_is_no_expression_is_explained_and_takes_no_output(root: Path) -> None:
    run, read, _ = shell_tools(root, sandbox="off")
    shell = await begin(run, "echo kept; touch done; sleep 1000")
    await until((root / "done").exists)
    assert "filter is not a regular expression" in await call(read, bash_id=shell, filter="(")
    assert "kept" in await call(read, bash_id=shell)


async def test_the_end_of_a_command_is_shown_with_the_rest_of_its_output(root: Path, mark: str) -> None:
    run, read, _ = shell_tools(root, sandbox="off")
    shell = await begin(run, f"sleep {mark} & echo last; exit 7")
    seen = ""
    while "Exit code" not in seen:
        seen += await call(read, bash_id=shell)
        await asyncio.sleep(0.01)
    assert "Exit code 7. 1 process that it left behind was ended." in seen
    assert "last" in seen


async def test_an_unknown_shell_is_named_with_those_of_the_run(root: Path) -> None:
    steps = [
        asked("KillShell", shell_id="x"),
        asked("Bash", command="sleep 1000", run_in_background=True),
        asked("BashOutput", bash_id="y"),
    ]
    context = await agent_of(root, *steps, [assistant_message("Done.")]).run_async("Go")
    assert "[E169] No background shell x (available: none)" in results(context)[0]
    assert "[E169] No background shell y (available: bash_1)" in results(context)[2]


async def test_outside_of_a_run_nobody_learns_the_ids_of_others(root: Path, mark: str) -> None:
    run, read, kill = shell_tools(root, sandbox="off", limits=ShellLimits(background_shells=1))
    shell = await begin(run, f"sleep {mark}")
    assert "(available: none)" in await call(read, bash_id="bash_1")
    assert shell not in await call(run, command="true", run_in_background=True)
    await call(kill, shell_id=shell)


async def test_no_more_shells_run_than_may(root: Path, mark: str) -> None:
    sleeping = [asked("Bash", command=f"sleep {mark}{n}", run_in_background=True) for n in range(4)]
    steps = [*sleeping[:3], asked("KillShell", shell_id="bash_1"), sleeping[3], [assistant_message("Done.")]]
    agent = agent_of(root, *steps, limits=ShellLimits(background_shells=2))
    outputs = results(await agent.run_async("Go"))
    assert "[E170] 2 background shells are running" in outputs[2]
    assert "bash_1, bash_2 with KillShell" in outputs[2]
    assert "as bash_3" in outputs[4]


async def test_a_command_in_the_background_has_a_time_limit_too(root: Path, mark: str) -> None:
    limits = ShellLimits(background_seconds=0.2, grace_seconds=0.1)
    run, read, _ = shell_tools(root, sandbox="off", limits=limits)
    shell = await begin(run, f"sleep {mark}")
    seen = ""
    while "ended" not in seen:
        seen = await call(read, bash_id=shell)
        await asyncio.sleep(0.01)
    assert "it took longer than 0.2 s" in seen


async def test_the_end_of_a_run_ends_what_it_has_in_the_background(root: Path, mark: str) -> None:
    background = asked("Bash", command=f"(setsid sleep {mark} &); sleep {mark}", run_in_background=True)
    agent = agent_of(root, background, asked("BashOutput", bash_id="bash_1"), [assistant_message("Done.")])
    context = await agent.run_async("Go")
    assert results(context)[1] == "Running.\nNo output."
    assert processes_with(mark) == []


async def test_a_run_does_not_see_the_shells_of_another_run(root: Path) -> None:
    background = asked("Bash", command="sleep 1000", run_in_background=True)
    tools = shell_tools(root, sandbox="off", approval=False)
    first = Agent("a", "x", model=ScriptedModel([background, [assistant_message("Done.")]]), tools=tools)
    await first.run_async("Go")
    steps = [asked("BashOutput", bash_id="bash_1"), [assistant_message("Done.")]]
    second = Agent("b", "x", model=ScriptedModel(steps), tools=tools)
    assert "No background shell bash_1" in results(await second.run_async("Go"))[0]


async def test_a_run_that_fails_ends_what_it_has_in_the_background(root: Path, mark: str) -> None:
    background = asked("Bash", command=f"sleep {mark}", run_in_background=True)
    agent = agent_of(root, background, RuntimeError("no answer"))
    with pytest.raises(RuntimeError, match="no answer"):
        await agent.run_async("Go")
    assert processes_with(mark) == []


@pytest.mark.parametrize("in_background", [True, False])
async def test_a_cancelled_run_has_ended_all_processes_when_it_returns(
    root: Path, mark: str, *, in_background: bool
) -> None:
    line = f"trap '' TERM; touch begun; sleep {mark}"
    steps = [asked("Bash", command=line, run_in_background=in_background)]
    if in_background:
        steps.append(asked("Bash", command=f"touch waits; sleep {mark}"))
    task = asyncio.create_task(agent_of(root, *steps).run_async("Go"))
    await until((root / ("waits" if in_background else "begun")).exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(mark) == []


async def test_a_run_that_waits_for_an_approval_keeps_its_shells_until_it_is_over(
    root: Path, mark: str
) -> None:
    steps = [
        asked("Bash", command=f"echo begun; touch begun; sleep {mark}", run_in_background=True),
        asked("Bash", command="echo second"),
        asked("BashOutput", bash_id="bash_1"),
        [assistant_message("Done.")],
    ]
    agent = agent_of(root, *steps, approval=True)
    context = await agent.run_async("Go")
    assert len(context["result"].interruptions) == 1
    context = await agent.run_async(approved(context), context)
    assert len(context["result"].interruptions) == 1
    await until((root / "begun").exists)
    context = await agent.run_async(approved(context), context)
    assert "Running.\nbegun\n" in results(context)
    assert processes_with(mark) == []


async def test_the_shells_of_a_run_that_nobody_resumes_end_by_themselves(root: Path, mark: str) -> None:
    async def wait() -> None:
        """Wait until the command has begun, so that the pause does not end it before."""
        await until((root / "begun").exists)

    steps = [
        asked("Bash", command=f"touch begun; sleep {mark}", run_in_background=True),
        asked("wait"),
        asked("Bash", command="echo second"),
    ]
    agent = agent_of(root, *steps, approval=True, beside=[wait], limits=ShellLimits(paused_seconds=1))
    context = await agent.run_async("Go")
    context = await agent.run_async(approved(context), context)
    assert context["result"].interruptions
    await until(lambda: not processes_with(mark))


def test_a_loop_may_end_in_the_moment_in_which_a_command_begins(
    root: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sync = to_thread.run_sync

    async def main() -> None:
        opened, returns = asyncio.Event(), asyncio.Event()

        async def waits(function: Any, *arguments: Any) -> Any:
            returned = await run_sync(function, *arguments)
            if function.__name__ == "_open":
                opened.set()
                await returns.wait()
            return returned

        monkeypatch.setattr(to_thread, "run_sync", waits)
        bash, *_ = shell_tools(root, sandbox="off")
        await call(bash, command=f"sleep {mark}", run_in_background=True)
        await opened.wait()
        returns.set()  # the tasks of the command are made in the last step of the loop

    asyncio.run(main())
    gc.collect()  # warns of coroutines that nobody has awaited
    deadline = time.monotonic() + 120
    while processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert processes_with(mark) == []


PROGRAM = """
import asyncio, json, sys
from kantan_agents.toolkit.shell import shell_tools

async def main():
    bash, *_ = shell_tools(sys.argv[1], sandbox=sys.argv[3])
    for line in ("setsid sleep MARK & echo; trap '' TERM; touch begun; sleep MARK",):
        arguments = {"command": line.replace("MARK", sys.argv[2]), "run_in_background": True}
        await bash.on_invoke_tool(None, json.dumps(arguments))
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.parametrize("place", ["off", "auto"])
async def test_nothing_survives_a_process_that_is_killed(
    root: Path, mark: str, place: str, preloaded: Preloaded
) -> None:
    with Path(os.devnull).open("wb") as nothing:  # noqa: ASYNC230 - opens at once
        process = preloaded.popen(["-c", PROGRAM, root, mark, place], stdout=nothing, stderr=nothing)
    try:
        await until((root / "begun").exists)
        assert len(processes_with(f"sleep {mark}")) > 1
    finally:
        process.kill()
        process.wait()
    await until(lambda: not processes_with(mark))
