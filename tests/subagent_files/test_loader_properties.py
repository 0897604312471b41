"""Property: the cache always gives the same result as a fresh load, whatever happens to the files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kantan_agents.errors import AgentNotFoundError
from kantan_agents.subagent_files import AgentDefinition, AgentLoader, name_key
from tests.subagent_files.agent_tree import restore_date, set_unique_time, write, write_text

NAMES = ("alpha", "Beta one", "beta-one", "gamma")
PATHS = ("a/1.md", "a/2.md", "a/sub/3.md", "b/1.md", "b/sub/2.md", "b/notes.txt")
PROMPTS = ("old", "new", "longer")
CACHE_SIZE = 4

names, paths, prompts = map(st.sampled_from, (NAMES, PATHS, PROMPTS))
RULES = settings(
    stateful_step_count=12,
    max_examples=min(settings().max_examples // 2, 50),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def outcome(get: Callable[[str], AgentDefinition], name: str) -> Any:
    try:
        agent = get(name)
    except AgentNotFoundError as error:
        return sorted(error.available)
    return (agent, agent.path)


class Files(RuleBasedStateMachine):
    """Subagent files that are written, edited, renamed, deleted, touched, and whose times are restored."""

    recheck_seconds = 0.0
    reads: list[str] | None = None
    """Names of the files read, if files are never racy in this test."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        self.agents = self.loader()
        self.taken: set[str] = set()
        """Names that files got by edits in place since the last full check."""

    def loader(self) -> AgentLoader:
        return AgentLoader(
            [self.root / "a", self.root / "b"], recheck_seconds=self.recheck_seconds, cache_size=CACHE_SIZE
        )

    @rule(path=paths, name=names, prompt=prompts)
    def write(self, path: str, name: str, prompt: str) -> None:
        if (self.root / path).exists():
            self.taken.add(name_key(name))
        write(self.root / path, name, prompt)

    @rule(path=paths, name=names, prompt=prompts)
    def replace(self, path: str, name: str, prompt: str) -> None:
        other = write(self.root / "new", name, prompt)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        other.replace(self.root / path)
        self.date_directories()

    @rule(path=paths, text=st.sampled_from(["", "nothing", "---\nname: alpha\n---\n"]))
    def spoil(self, path: str, text: str) -> None:
        write_text(self.root / path, text)

    @rule(path=paths, name=names, prompt=prompts)
    def edit_and_restore_the_date(self, path: str, name: str, prompt: str) -> None:
        file = self.root / path
        if file.exists():
            date = file.stat().st_mtime_ns
            self.taken.add(name_key(name))
            write(file, name, prompt)
            restore_date(file, date)

    @rule(path=paths)
    def touch(self, path: str) -> None:
        if (self.root / path).exists():
            set_unique_time(self.root / path)

    @rule(path=paths)
    def delete(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)
        self.date_directories()

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        if (self.root / old).exists():
            (self.root / new).parent.mkdir(parents=True, exist_ok=True)
            (self.root / old).rename(self.root / new)
            self.date_directories()

    @rule(directory=st.sampled_from(["a", "b", "a/sub"]))
    def delete_a_directory(self, directory: str) -> None:
        shutil.rmtree(self.root / directory, ignore_errors=True)
        self.date_directories()

    @rule()
    def exchange_the_directories(self) -> None:
        if (self.root / "a").exists() and (self.root / "b").exists():
            (self.root / "a").rename(self.root / "c")
            (self.root / "b").rename(self.root / "a")
            (self.root / "c").rename(self.root / "b")
            self.date_directories()

    @rule(link=st.sampled_from(["a/link", "b/link.md"]), to=st.sampled_from(["a", "b", "b/1.md", "none"]))
    def link(self, link: str, to: str) -> None:
        (self.root / link).parent.mkdir(exist_ok=True)
        (self.root / link).unlink(missing_ok=True)
        (self.root / link).symlink_to(self.root / to)
        self.date_directories()

    def date_directories(self) -> None:
        for directory in (self.root, *self.root.rglob("*")):
            if directory.is_dir() and not directory.is_symlink():
                set_unique_time(directory)

    @invariant()
    def one_agent_is_as_fresh(self) -> None:
        fresh = self.loader().load_agents_now()
        for name in NAMES:
            if self.recheck_seconds == 0 or name_key(name) not in self.taken:
                assert outcome(self.agents.get_agent_now, name) == outcome(fresh.get, name)

    @invariant()
    def all_agents_are_as_fresh(self) -> None:
        self.compare_all()

    def compare_all(self) -> None:
        ours, fresh = self.agents.load_agents_now(), self.loader().load_agents_now()
        assert [(agent, agent.path) for agent in ours] == [(agent, agent.path) for agent in fresh]
        assert (ours.problems, ours.shadowed) == (fresh.problems, fresh.shadowed)
        self.reads_nothing_again(list(ours))
        self.taken.clear()

    def reads_nothing_again(self, agents: list[AgentDefinition]) -> None:
        files = [*self.root.glob("[ab]/**/*.md")]
        if len(files) > CACHE_SIZE or any(file.is_symlink() for file in files):
            return
        before = list(self.reads or ())
        assert list(map(id, self.agents.load_agents_now())) == list(map(id, agents))
        assert list(self.reads or ()) == before

    def teardown(self) -> None:
        shutil.rmtree(self.root)


class FilesRarelyChecked(Files):
    """The same with a loader whose `get_agent` checks all files only when it must."""

    recheck_seconds = 3600.0

    @invariant()
    def all_agents_are_as_fresh(self) -> None:
        """Do nothing after a step: a full load would bring everything up to date."""

    @rule()
    @precondition(lambda self: bool(self.taken))
    def load_all(self) -> None:
        self.compare_all()


@pytest.mark.usefixtures("_settled")
def test_results_equal_those_of_a_fresh_loader(reads: list[str]) -> None:
    class Counted(Files):
        pass

    Counted.reads = reads
    run_state_machine_as_test(Counted, settings=RULES)


@pytest.mark.usefixtures("_settled")
def test_get_agent_equals_a_fresh_loader_unless_another_file_took_its_name_in_place() -> None:
    run_state_machine_as_test(FilesRarelyChecked, settings=RULES)


def test_the_properties_hold_with_real_file_times() -> None:
    run_state_machine_as_test(FilesRarelyChecked, settings=RULES)
