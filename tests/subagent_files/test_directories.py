"""The directories that are searched, and their order (spec subagents, "Agent 加载优先级")."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import AgentLoader
from kantan_agents.errors import InvalidOptionError
from tests.subagent_files.agent_tree import write
from tests.subagent_files.conftest import Places


def paths(loader: AgentLoader) -> list[Path]:
    return [directory.path for directory in loader.directories]


def of(directory: Path) -> list[Path]:
    return [directory / ".kode/agents", directory / ".claude/agents"]


def test_the_project_comes_before_the_user_and_kode_before_claude(places: Places) -> None:
    loader = places.loader()
    assert paths(loader) == [*of(places.project), *of(places.home)]
    assert [directory.scope for directory in loader.directories] == ["project", "project", "user", "user"]


def test_the_search_walks_up_to_the_root_of_the_repository_the_nearest_first(places: Places) -> None:
    (places.project / "a/b").mkdir(parents=True)
    loader = AgentLoader(cwd=places.project / "a/b", home=places.home)
    project = [*of(places.project / "a/b"), *of(places.project / "a"), *of(places.project)]
    assert paths(loader) == [*project, *of(places.home)]


def test_the_search_ends_at_the_innermost_of_nested_repositories(places: Places) -> None:
    inner = places.project / "vendored"
    (inner / ".git").mkdir(parents=True)
    assert paths(AgentLoader(cwd=inner, home=places.home)) == [*of(inner), *of(places.home)]


def test_a_worktree_has_a_file_where_a_repository_has_a_directory(places: Places) -> None:
    worktree = places.project / "worktree"
    (worktree / "src").mkdir(parents=True)
    (worktree / ".git").write_text("gitdir: ../.git/worktrees/worktree\n")
    loader = AgentLoader(cwd=worktree / "src", home=places.home)
    assert paths(loader) == [*of(worktree / "src"), *of(worktree), *of(places.home)]


def test_outside_a_repository_only_the_working_directory_is_searched(places: Places) -> None:
    (places.project / ".git").rmdir()
    (places.project / "a").mkdir()
    loader = AgentLoader(cwd=places.project / "a", home=places.home)
    assert paths(loader) == [*of(places.project / "a"), *of(places.home)]


def test_the_parents_of_a_linked_directory_are_those_of_its_target(places: Places, tmp_path: Path) -> None:
    (places.project / "a").mkdir()
    (tmp_path / "link").symlink_to(places.project / "a")
    loader = AgentLoader(cwd=tmp_path / "link", home=places.home)
    assert paths(loader) == [*of(places.project / "a"), *of(places.project), *of(places.home)]


def test_environment_variables_replace_the_directories_of_the_user(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KODE_CONFIG_DIR", str(tmp_path / "kode"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "~/claude")
    user = [tmp_path / "kode/agents", places.home / "claude/agents"]
    assert paths(places.loader()) == [*of(places.project), *user]


def test_an_empty_environment_variable_is_ignored(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "")
    assert paths(places.loader()) == [*of(places.project), *of(places.home)]


def test_the_environment_is_read_when_the_loader_is_created(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = places.loader()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    write(tmp_path / "claude/agents/a.md", "late")
    assert loader.load_agents_now().names() == ()
    assert places.loader().load_agents_now().names() == ("late",)


def test_a_directory_found_twice_is_searched_once_at_its_first_position(places: Places) -> None:
    home = Path(os.path.realpath(places.home))
    loader = AgentLoader(cwd=home, home=home)
    assert [(each.path, each.scope) for each in loader.directories] == [
        (path, "project") for path in of(home)
    ]


def test_the_working_directory_is_determined_when_the_loader_is_created(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(places.project)
    loader = AgentLoader(home=places.home)
    monkeypatch.chdir(places.home)
    assert paths(loader) == [*of(places.project), *of(places.home)]


def test_given_directories_are_searched_exclusively_and_in_order(places: Places, tmp_path: Path) -> None:
    loader = places.loader(directories=[tmp_path / "b", "a", "~/c", "a"])
    assert paths(loader) == [tmp_path / "b", places.project / "a", places.home / "c"]
    assert {directory.scope for directory in loader.directories} == {"given"}


def test_one_directory_instead_of_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="directories: must be a list"):
        AgentLoader(str(tmp_path))


def test_directories_that_do_not_exist_may_appear_later(places: Places) -> None:
    loader = places.loader()
    assert (len(loader.load_agents_now()), loader.load_agents_now().problems) == (0, ())
    write(places.home / ".claude/agents/a.md", "late")
    assert loader.get_agent_now("late").name == "late"


def test_the_repr_names_the_directories(tmp_path: Path) -> None:
    assert repr(AgentLoader([tmp_path])) == f"AgentLoader([{str(tmp_path)!r}])"


class TestNoHome:
    """A user without an entry in the user database, as in many containers."""

    @pytest.fixture(autouse=True)
    def _homeless(self, places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(uid: int) -> Any:
            raise KeyError(uid)

        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", unknown)
        monkeypatch.chdir(places.project)

    def test_paths_that_do_not_need_it_still_work(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert paths(AgentLoader([tmp_path, "a"])) == [tmp_path, Path.cwd() / "a"]
        for variable in ("KODE_CONFIG_DIR", "CLAUDE_CONFIG_DIR"):
            monkeypatch.setenv(variable, str(tmp_path / variable))
        loader = AgentLoader()
        user = [tmp_path / "KODE_CONFIG_DIR/agents", tmp_path / "CLAUDE_CONFIG_DIR/agents"]
        assert paths(loader) == [*of(Path.cwd()), *user]
        assert loader.load_agents_now().problems == ()

    def test_the_directories_of_the_user_are_skipped_with_a_warning_in_the_catalog(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        write(Path.cwd() / ".kode/agents/a.md", "a")
        for variable, left_out in ((None, "~/.claude/agents"), ("~/claude", "~/claude/agents")):
            if variable:
                monkeypatch.setenv("CLAUDE_CONFIG_DIR", variable)
            loader = AgentLoader()
            assert paths(loader) == of(Path.cwd())
            catalog = loader.load_agents_now()
            assert catalog.names() == ("a",)
            assert {(str(each.path), each.severity) for each in catalog.problems} == {
                ("~/.kode/agents", "warning"),
                (left_out, "warning"),
            }
            assert all("the user has no home" in each.message for each in catalog.problems)
        assert caplog.records == []
        assert paths(AgentLoader(home=tmp_path))[2:] == [
            tmp_path / ".kode/agents",
            tmp_path / "claude/agents",
        ]

    def test_a_given_directory_in_the_home_is_refused(self) -> None:
        with pytest.raises(InvalidOptionError, match="option home: '~/agents' needs a home directory"):
            AgentLoader(["~/agents"])


class TestNoWorkingDirectory:
    @pytest.fixture(autouse=True)
    def _deleted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "deleted").mkdir()
        monkeypatch.chdir(tmp_path / "deleted")
        (tmp_path / "deleted").rmdir()

    def test_paths_that_do_not_need_it_still_work(self, places: Places) -> None:
        write(places.home / "a.md", "a")
        for loader in (AgentLoader([places.home]), AgentLoader(["~"], home=places.home)):
            assert loader.load_agents_now().names() == ("a",)
        assert paths(places.loader())[:2] == of(places.project)

    @pytest.mark.parametrize(
        "options", [{}, {"directories": ["a"]}, {"cwd": "a"}, {"home": "a", "directories": ["~"]}]
    )
    def test_paths_that_need_it_are_refused(self, options: Any) -> None:
        with pytest.raises(InvalidOptionError, match="option cwd: there is no working directory") as caught:
            AgentLoader(**options)
        assert caught.value.option == "cwd"
