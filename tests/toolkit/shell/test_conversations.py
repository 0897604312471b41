"""``BackgroundShells``: commands in the background that go on from run to run."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest
from agents import function_tool

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.toolkit.shell import BackgroundShells, ShellLimits, shell_tools
from tests.toolkit.calls import processes_with, until
from tests.toolkit.shell.test_background import agent_of, asked, results

DONE = [assistant_message("Done.")]


def begun(command: str) -> list[Any]:
    return asked("Bash", command=command, run_in_background=True)


async def test_a_command_goes_on_from_run_to_run_until_the_end(root: Path, mark: str) -> None:
    shells = BackgroundShells()
    line = (
        f"echo one; touch first; until [ -e go ]; do sleep 0.01; done; echo two; touch second; sleep {mark}"
    )
    agent = agent_of(root, begun(line), DONE, asked("BashOutput", bash_id="bash_1"), DONE)
    with shells.used():
        said = results(await agent.run_async("Go"))[0]
        assert "as bash_1, for at most 3600 s, and until the conversation ends." in said
        await until((root / "first").exists)
        (root / "go").touch()
        await until((root / "second").exists)
        assert results(await agent.run_async("And now?")) == ["Running.\none\ntwo\n"]
    assert [(shell.id, shell.line) for shell in shells.listed()] == [("bash_1", line)]
    assert processes_with(mark)
    await shells.end()
    assert processes_with(mark) == []
    assert shells.listed() == []


async def test_a_cancelled_run_leaves_it_running(root: Path, mark: str) -> None:
    shells = BackgroundShells()
    waits = asked("Bash", command=f"touch waits; sleep {mark}2")
    with shells.used():
        task = asyncio.create_task(agent_of(root, begun(f"sleep {mark}"), waits).run_async("Go"))
        await until((root / "waits").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert processes_with(f"{mark}2") == []
    await until(lambda: processes_with(f"sleep {mark}"))
    await shells.end()


async def test_a_command_of_a_subagent_ends_with_the_subagent(root: Path, mark: str) -> None:
    inner = agent_of(root, begun(f"sleep {mark}"), asked("BashOutput", bash_id="bash_1"), DONE)
    said: list[str] = []

    @function_tool
    async def delegate() -> str:
        """Delegate."""
        said.extend(results(await inner.run_async("Go")))
        return "Done."

    outer = Agent("lead", "Lead.", model=ScriptedModel([asked("delegate"), DONE]), tools=[delegate])
    shells = BackgroundShells()
    with shells.used():
        await outer.run_async("Go")
    assert "and until this task ends." in said[0]
    assert said[1].startswith("Running.")
    assert shells.listed() == []
    assert processes_with(mark) == []


async def test_conversations_with_the_same_tools_do_not_see_each_other(root: Path, mark: str) -> None:
    tools = shell_tools(root, sandbox="off", approval=False, limits=ShellLimits(background_shells=1))
    one, other = BackgroundShells(), BackgroundShells()

    async def talk(shells: BackgroundShells, *steps: Any) -> list[str]:
        with shells.used():
            agent = Agent("a", "x", model=ScriptedModel([*steps, DONE]), tools=tools)
            return results(await agent.run_async("Go"))

    await talk(one, begun(f"sleep {mark}1"))
    assert "(available: none)" in (await talk(other, asked("BashOutput", bash_id="bash_1")))[0]
    await talk(other, begun(f"sleep {mark}2"))
    (refused,) = await talk(one, begun(f"sleep {mark}3"))
    assert "[E170] 1 background shells are running, and no more may: end one of bash_1 with" in refused
    await one.end()
    await until(lambda: processes_with(f"{mark}2"))
    await other.end()


async def test_tools_of_other_folders_have_ids_and_commands_of_their_own(root: Path, mark: str) -> None:
    (root / "part").mkdir()
    shells = BackgroundShells()
    with shells.used():
        await agent_of(root, begun(f"sleep {mark}"), DONE).run_async("Go")
        steps = [begun(f"sleep {mark}"), asked("KillShell", shell_id="bash_1"), DONE]
        said = results(await agent_of(root / "part", *steps).run_async("Go"))
    assert "as bash_2" in said[0]
    assert "(available: bash_2)" in said[1]
    assert [shell.id for shell in shells.listed()] == ["bash_1", "bash_2"]
    await shells.end()


@pytest.mark.usefixtures("sandbox")
async def test_the_commands_of_a_conversation_share_a_directory_that_ends_with_it(root: Path) -> None:
    write, read = asked("Bash", command="echo a > /tmp/a"), asked("Bash", command="cat /tmp/a")
    tools = shell_tools(root, sandbox="required", approval=False)
    model = ScriptedModel([write, DONE, read, DONE, read, DONE])
    agent = Agent("a", "x", model=model, tools=tools)
    shells = BackgroundShells()
    with shells.used():
        await agent.run_async("Go")
        assert "Exit code 0." in results(await agent.run_async("Go"))[0]
        await shells.end()
        assert "No such file" in results(await agent.run_async("Go"))[0]
    await shells.end()


async def test_commands_end_with_the_object_that_nobody_has_ended(root: Path, mark: str) -> None:
    shells = BackgroundShells()
    with shells.used():
        await agent_of(root, begun(f"sleep {mark}"), DONE).run_async("Go")
    await until(lambda: processes_with(mark))
    del shells
    gc.collect()
    await until(lambda: not processes_with(mark))
