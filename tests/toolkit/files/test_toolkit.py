"""The factory: what it gives, what it refuses; and how calls end."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from blockbuster import blockbuster_ctx

import kantan_agents
from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError, ToolkitUnavailableError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit import toolkit
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import ScanStoppedError, in_thread
from tests.programs import Preloaded
from tests.toolkit.files.calling import Tools

READING = ["Read", "Glob", "Grep", "LS"]
WRITING = ["Write", "Edit", "MultiEdit"]


def test_nothing_that_writes_is_given_silently(tmp_path: Path) -> None:
    assert [tool.name for tool in toolkit(tmp_path)] == READING
    assert [tool.name for tool in kantan_agents.toolkit(tmp_path)] == READING
    writing = toolkit(str(tmp_path), write=True)
    assert [tool.name for tool in writing] == READING + WRITING
    assert [tool.name for tool in writing if tool.needs_approval] == WRITING
    assert not any(tool.needs_approval for tool in toolkit(tmp_path, write=True, approval=False))


@pytest.mark.parametrize(
    ("root", "options", "option"),
    [
        ("missing", {}, "root"),
        ("a.txt", {}, "root"),
        ("a\0b", {}, "root"),
        (7, {}, "root"),
        (".", {"write": 1}, "write"),
        (".", {"approval": None}, "approval"),
    ],
)
def test_wrong_options_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Any, options: dict[str, Any], option: str
) -> None:
    (tmp_path / "a.txt").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError) as raised:
        toolkit(root, **options)
    assert raised.value.option == option


def test_a_system_that_cannot_confine_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_NOFOLLOW")
    with pytest.raises(ToolkitUnavailableError, match="needs Linux or macOS"):
        toolkit(tmp_path)


def test_importing_the_tools_works_where_they_cannot_be_used(preloaded: Preloaded) -> None:
    code = (
        "import os, kantan_agents\n"
        "for name in ('O_NOFOLLOW', 'O_DIRECTORY', 'O_NONBLOCK', 'O_CLOEXEC', 'O_PATH', 'fchown'):\n"
        "    delattr(os, name)\n"
        "try:\n"
        "    kantan_agents.toolkit('.')\n"
        "except kantan_agents.KantanAgentsError as error:\n"
        "    print(error.code)\n"
    )
    done = preloaded.run(["-c", code])
    assert done.stdout.strip() == "E165", done.stderr


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("a/b", "a/b"),
        ("./a//b/", "a/b"),
        ("a/../b", "b"),
        ("", ""),
        (".", ""),
        ("/work/root/a", "a"),
        ("/work/root", ""),
        ("//work/root/a", "a"),
        ("/alias/a", "a"),
        ("../root/a", "a"),
        ("..", None),
        ("a/../../b", None),
        ("/work/root2/a", None),
        ("/", None),
        ("/work/root/../x", None),
        ("a\0b", None),
        ("\ud800", None),
        ("~/a", "~/a"),
    ],
)
def test_rules_see_one_spelling_of_a_path(path: str, relative: str | None) -> None:
    assert Root("/work/root", "/alias", 0).relative(path) == relative


def test_a_file_system_with_several_spellings_accepts_that_of_the_file(tmp_path: Path) -> None:
    # No such file system is at hand, so the check of the names is tried on another one.
    from kantan_agents.toolkit.files.opening import open_folder, opened_root

    (tmp_path / "src").mkdir()
    root = Root(str(tmp_path), str(tmp_path), tmp_path.stat().st_dev, folds_names=True)
    with opened_root(root) as top:
        os.close(open_folder(root, top, ("src",)))
        with pytest.raises(kantan_agents.KantanAgentsError, match="did you mean 'src'"):
            open_folder(root, top, ("SRC",))


async def test_no_tool_blocks_the_event_loop(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / ".gitignore").write_text("*.log")
    tools = Tools(tmp_path)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": "a.txt"}),
        ("Read", {"file_path": "b.txt"}),
        ("Glob", {"pattern": "*"}),
        ("Grep", {"pattern": "one"}),
        ("LS", {}),
        ("Write", {"file_path": "b/c.txt", "content": "two"}),
        ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "1"}),
        ("MultiEdit", {"file_path": "a.txt", "edits": [{"old_string": "1", "new_string": "2"}]}),
    ]
    with blockbuster_ctx():
        results = [await tools(name, **arguments) for name, arguments in calls]
    assert [place for place, answer in enumerate(results) if "error" in answer] == [1]


async def test_a_write_waits_for_its_approval(tmp_path: Path) -> None:
    model = ScriptedModel(
        [
            [function_call("Write", {"file_path": "a.txt", "content": "one"}, call_id="1")],
            [assistant_message("done")],
        ]
    )
    agent = Agent("writer", "Write.", model=model, tools=toolkit(tmp_path, write=True))
    context = await agent.run_async("go", {})
    result = context["result"]
    assert not (tmp_path / "a.txt").exists()
    state = result.to_state()
    state.approve(result.interruptions[0])
    await agent.run_async(state, context)
    assert (tmp_path / "a.txt").read_text() == "one"


async def test_a_cancelled_scan_ends_its_thread() -> None:
    started, ended = threading.Event(), threading.Event()

    def scan(stop: Any) -> None:
        started.set()
        try:
            while True:
                stop.check()
        except ScanStoppedError:
            ended.set()
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(in_thread, scan)
        assert await anyio.to_thread.run_sync(started.wait, 10)
        group.cancel_scope.cancel()
    assert await anyio.to_thread.run_sync(ended.wait, 10)


def descriptors() -> int:
    """Return how many descriptors this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


async def test_a_cancelled_search_leaves_no_descriptor_open(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"{number}.txt").write_text("a" * 10_000)
    tools = Tools(tmp_path)
    await tools("Grep", pattern="b")
    before = descriptors()
    with anyio.move_on_after(0.001) as scope:
        await tools("Grep", pattern="(a|b)*c")
    assert scope.cancelled_caught
    with anyio.fail_after(120):
        while descriptors() > before:  # until the thread has ended
            await anyio.lowlevel.checkpoint()


async def test_a_scan_that_takes_too_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one")
    monkeypatch.setattr("kantan_agents.toolkit.files.threads.SearchStop.is_late", property(lambda _: True))
    tools = Tools(tmp_path)
    for answer in (await tools("Glob", pattern="**"), await tools("Grep", pattern="one")):
        assert "[stopped after 60 seconds" in answer
