"""What the loader caches, and when it reads files again (spec subagents, "Agent 缓存")."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import AgentLoader
from kantan_agents.errors import AgentNotFoundError
from kantan_agents.subagent_files.loading import cache, loader, scan
from kantan_agents.subagent_files.loading.scan import is_racy
from tests.subagent_files.agent_tree import agent_text, restore_date, set_unique_time, write, write_text

settled = pytest.mark.usefixtures("_settled")


def keeping(directory: Path, **options: Any) -> AgentLoader:
    """Return a loader that checks all files only when it must."""
    return AgentLoader([directory], **{"recheck_seconds": 3600, **options})


# Scenarios "LRU 缓存", "缓存命中", "缓存失效"


@settled
def test_scenario_the_cache_keeps_the_most_recently_used_files(tmp_path: Path, reads: list[str]) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.md", name)
    agents = keeping(tmp_path, cache_size=2)
    agents.load_agents_now()
    assert reads == ["a.md", "b.md", "c.md"]
    for name in "bcb":
        agents.get_agent_now(name)
    assert len(reads) == 3
    agents.get_agent_now("a")
    agents.get_agent_now("b")
    agents.get_agent_now("c")
    assert reads[3:] == ["a.md", "c.md"]


@settled
async def test_scenario_a_cached_agent_is_returned_without_reading_its_file(
    tmp_path: Path, reads: list[str]
) -> None:
    write(tmp_path / "a.md", "a")
    agents = keeping(tmp_path)
    first = await agents.get_agent("a")
    assert await agents.get_agent("A") is first
    assert (await agents.load_agents())[0] is first
    assert agents.get_agent_now("a") is first
    assert reads == ["a.md"]


@settled
@pytest.mark.parametrize("whole", [True, False])
def test_scenario_a_file_that_was_modified_is_read_again_and_only_that(
    tmp_path: Path, reads: list[str], *, whole: bool
) -> None:
    write(tmp_path / "a.md", "a", "old")
    write(tmp_path / "b.md", "b")
    agents = keeping(tmp_path)
    before = agents.load_agents_now()
    write(tmp_path / "a.md", "a", "new")
    after = agents.load_agents_now().get("a") if whole else agents.get_agent_now("a")
    assert (before.get("a").system_prompt, after.system_prompt) == ("old", "new")
    assert reads == ["a.md", "b.md", "a.md"]
    assert agents.get_agent_now("b") is before.get("b")


@settled
def test_failures_are_cached_too(tmp_path: Path, reads: list[str]) -> None:
    write_text(tmp_path / "a.md", "nothing")
    agents = keeping(tmp_path)
    before = agents.load_agents_now().problems
    assert agents.load_agents_now().problems == before
    assert reads == ["a.md"]
    write(tmp_path / "a.md", "a")
    assert agents.load_agents_now().problems == ()


def test_a_cache_of_size_zero_reads_every_time(tmp_path: Path, reads: list[str]) -> None:
    write(tmp_path / "a.md", "a", "one")
    agents = keeping(tmp_path, cache_size=0)
    assert agents.get_agent_now("a").system_prompt == "one"
    write(tmp_path / "a.md", "a", "two")
    assert agents.get_agent_now("a").system_prompt == "two"
    agents.load_agents_now()
    assert len(reads) == 3


# Changes that must be noticed


def test_an_edit_within_the_same_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    agents = keeping(tmp_path)
    for number in range(50):
        path.write_text(agent_text("a", f"{number:02}"))
        assert agents.get_agent_now("a").system_prompt == f"{number:02}"
        path.write_text(agent_text("a", f"{number:02}".replace("0", "x")))
        assert agents.load_agents_now().get("a").system_prompt == f"{number:02}".replace("0", "x")


@settled
def test_an_edit_is_noticed_even_if_the_old_modification_time_is_restored(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "a", "old")
    agents = keeping(tmp_path)
    agents.get_agent_now("a")
    date = path.stat().st_mtime_ns
    write(path, "a", "new")
    restore_date(path, date)
    assert agents.get_agent_now("a").system_prompt == "new"


@settled
def test_a_replacement_file_with_the_same_time_and_size_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "a", "old")
    agents = keeping(tmp_path)
    agents.get_agent_now("a")
    status = path.stat()
    other = write(tmp_path / "other", "a", "new")
    os.utime(other, ns=(status.st_mtime_ns, status.st_mtime_ns))
    other.replace(path)
    assert path.stat().st_size == status.st_size
    assert agents.get_agent_now("a").system_prompt == "new"


@settled
def test_a_renamed_file_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "a")
    agents = keeping(tmp_path)
    agents.get_agent_now("a")
    write(path, "b")
    with pytest.raises(AgentNotFoundError):
        agents.get_agent_now("a")
    assert agents.get_agent_now("b").path == path


@settled
def test_deleting_a_file_reveals_the_one_it_shadowed(tmp_path: Path) -> None:
    first = write(tmp_path / "1/a.md", "a", "first")
    write(tmp_path / "2/a.md", "a", "second")
    agents = keeping(tmp_path)
    assert agents.get_agent_now("a").system_prompt == "first"
    first.unlink()
    set_unique_time(first.parent)
    assert agents.get_agent_now("a").system_prompt == "second"


@settled
def test_a_new_file_with_higher_priority_replaces_the_agent(tmp_path: Path) -> None:
    write(tmp_path / "m/m.md", "a", "third")
    agents = keeping(tmp_path)
    assert agents.get_agent_now("a").system_prompt == "third"
    write(tmp_path / "m/b.md", "a", "second")
    assert agents.get_agent_now("a").system_prompt == "second"
    write(tmp_path / "c/d/e.md", "a", "first")
    assert agents.get_agent_now("a").system_prompt == "first"


@settled
def test_a_directory_deleted_and_recreated_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "agents/a.md", "a", "old")
    agents = keeping(tmp_path / "agents")
    assert agents.get_agent_now("a").system_prompt == "old"
    shutil.rmtree(tmp_path / "agents")
    with pytest.raises(AgentNotFoundError):
        agents.get_agent_now("a")
    write(tmp_path / "agents/a.md", "a", "new")
    assert agents.get_agent_now("a").system_prompt == "new"


@settled
def test_a_directory_link_with_a_new_target_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "one/a.md", "a", "one")
    write(tmp_path / "two/a.md", "a", "two")
    (tmp_path / "way").symlink_to(tmp_path / "one")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/link").symlink_to(tmp_path / "way")
    agents = keeping(tmp_path / "agents")
    assert agents.get_agent_now("a").system_prompt == "one"
    (tmp_path / "way").unlink()
    (tmp_path / "way").symlink_to(tmp_path / "two")
    assert agents.get_agent_now("a").system_prompt == "two"


@settled
@pytest.mark.parametrize("name", ["link", "link.md"])
def test_the_target_of_a_broken_link_may_appear_and_replace_an_agent(tmp_path: Path, name: str) -> None:
    write(tmp_path / "agents/z.md", "a", "second")
    (tmp_path / "agents" / name).symlink_to(tmp_path / "later")
    agents = keeping(tmp_path / "agents")
    assert agents.get_agent_now("a").system_prompt == "second"
    write(tmp_path / ("later" if name.endswith(".md") else "later/a.md"), "a", "first")
    assert agents.get_agent_now("a").system_prompt == "first"


@settled
def test_each_directory_of_a_tree_is_watched(tmp_path: Path) -> None:
    places = [f"{outer}/{inner}" for outer in "abc" for inner in "xyz"]
    for place in places:
        write(tmp_path / place / "z.md", f"not {place}")
    write(tmp_path / "z/z.md", "a", "z")
    agents = keeping(tmp_path)
    agents.load_agents_now()
    for place in reversed(places):
        write(tmp_path / place / "a.md", "a", place)
        assert agents.get_agent_now("a").system_prompt == place


def test_a_file_that_appears_within_the_same_tick_of_the_clock_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "z.md").write_text(agent_text("a", "z"))
    agents = keeping(tmp_path)
    for number in reversed(range(50)):
        assert agents.get_agent_now("a").system_prompt != str(number)
        (tmp_path / f"{number:02}.md").write_text(agent_text("a", str(number)))
        assert agents.get_agent_now("a").system_prompt == str(number)


@settled
def test_a_name_taken_by_an_edit_in_place_is_noticed_at_the_next_full_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    monkeypatch.setattr(loader, "monotonic", lambda: seconds)
    other = write(tmp_path / "1.md", "other")
    write(tmp_path / "2.md", "a", "second")
    agents = keeping(tmp_path, recheck_seconds=5)
    agents.get_agent_now("a")
    write(other, "a", "first")
    seconds += 4.9
    assert agents.get_agent_now("a").system_prompt == "second"
    seconds += 0.1
    assert agents.get_agent_now("a").system_prompt == "first"


# Files that need not be read


@settled
def test_a_touched_file_gives_the_same_definition_object(tmp_path: Path, reads: list[str]) -> None:
    path = write(tmp_path / "a.md", "a")
    agents = keeping(tmp_path)
    first = agents.get_agent_now("a")
    set_unique_time(path)
    assert agents.get_agent_now("a") is first
    assert len(reads) == 2


def test_a_racy_file_is_read_again_and_gives_the_same_definition_object(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.md", "a")
    at = path.stat().st_ctime_ns + 10_000_000
    monkeypatch.setattr(cache, "clock_ns", lambda: at)
    agents = keeping(tmp_path)
    first = agents.get_agent_now("a")
    assert agents.get_agent_now("a") is first
    at += 50_000_000
    for _ in range(3):
        assert agents.get_agent_now("a") is first
    assert len(reads) == 3


def test_a_racy_directory_is_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at = tmp_path.stat().st_ctime_ns + 10_000_000
    monkeypatch.setattr(scan, "clock_ns", lambda: at)
    directories = AgentLoader([tmp_path]).directories
    assert not scan.list_files(directories).is_current()
    at += 50_000_000
    assert scan.list_files(directories).is_current()


@pytest.mark.parametrize(
    ("written", "changed", "now", "racy"),
    [
        (10**18 + 1, 10**18 + 1, 10**18 + 49_000_000, True),
        (10**18 + 1, 10**18 + 1, 10**18 + 51_000_000, False),
        (10**18, 10**18, 10**18 + 1_900_000_000, True),
        (10**18, 10**18, 10**18 + 2_100_000_000, False),
        (10**18, 10**18 + 1, 10**18 + 51_000_000, False),
        (5, 10**18 + 1, 10**18 + 2, True),
        (10**18 + 1, 5, 10**18 + 2, True),
        # Times in the future: a change time means that the clocks differ, a modification time means nothing.
        (5, 10**19, 10**18, True),
        (10**19, 5, 10**18, False),
    ],
)
def test_which_signatures_are_racy(written: int, changed: int, now: int, *, racy: bool) -> None:
    assert is_racy((written, changed, 1, 2, 3), now) is racy
