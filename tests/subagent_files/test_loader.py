"""Which agents are loaded, and how other files are reported (spec subagents, "Agent 加载优先级")."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.errors import AgentFileError, AgentNotFoundError, InvalidOptionError
from kantan_agents.subagent_files import AgentDefinition, AgentLoader, ShadowedAgent
from kantan_agents.subagent_files.frontmatter.document import read_regular_file
from tests.subagent_files.agent_tree import agent_text, without_root, write, write_text
from tests.subagent_files.conftest import Places

BUILTIN = AgentDefinition(name="helper", description="Built in.", system_prompt="builtin")
IN_ORDER = ("project .kode", "project .claude", "user .kode", "user .claude", "builtin")


def put(places: Places, place: str) -> Path:
    scope, house = place.split()
    base = places.project if scope == "project" else places.home
    return write(base / house / "agents/helper.md", "helper", place)


# Scenario "加载优先级顺序": each before each that follows


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(IN_ORDER, 2)])
def test_the_first_definition_is_used_and_the_other_is_listed_as_shadowed(
    places: Places, first: str, second: str
) -> None:
    winner = put(places, first)
    loser = None if second == "builtin" else put(places, second)
    loader = places.loader(builtin=[BUILTIN])
    catalog = loader.load_agents_now()
    assert [agent.system_prompt for agent in catalog] == [first]
    assert loader.get_agent_now("helper") is catalog[0]
    assert catalog.shadowed[0] == ShadowedAgent("helper", loser, winner)


def test_the_nearest_directory_of_a_project_wins(places: Places) -> None:
    write(places.project / ".kode/agents/a.md", "a", "above")
    write(places.project / "sub/.claude/agents/a.md", "a", "near")
    loader = AgentLoader(cwd=places.project / "sub", home=places.home)
    assert loader.get_agent_now("a").system_prompt == "near"


def test_scenario_a_projects_agent_overrides_the_global_one(places: Places) -> None:
    put(places, "user .kode")
    assert places.loader().get_agent_now("helper").system_prompt == "user .kode"
    put(places, "project .claude")
    assert places.loader().get_agent_now("helper").system_prompt == "project .claude"


def test_scenario_agents_of_claude_code_are_loaded_from_the_home(places: Places) -> None:
    fields = "name: reviewer\ndescription: Use it.\ntools: Read, Bash(git diff:*)\nmodel: sonnet\n"
    write_text(places.home / ".claude/agents/reviewer.md", f"---\n{fields}---\n\nReview.")
    agent = places.loader().get_agent_now("reviewer")
    assert (agent.tools, agent.model, agent.system_prompt) == (
        ("Read", "Bash(git diff:*)"),
        "sonnet",
        "Review.",
    )


async def test_scenario_the_loader_has_directories_and_loads_all_or_one(places: Places) -> None:
    path = put(places, "project .kode")
    loader = places.loader()
    assert path.parent in [directory.path for directory in loader.directories]
    assert [agent.name for agent in await loader.load_agents()] == ["helper"]
    assert (await loader.get_agent("helper")).path == path


def test_names_match_regardless_of_case_and_separators(places: Places) -> None:
    write(places.project / ".claude/agents/a.md", "Code Reviewer", "first")
    shadowed = write(places.project / ".claude/agents/b.md", "code_reviewer", "second")
    loader = places.loader()
    assert loader.get_agent_now("code-reviewer").system_prompt == "first"
    assert [(each.name, each.path) for each in loader.load_agents_now().shadowed] == [
        ("code_reviewer", shadowed)
    ]


def test_the_first_of_two_built_in_agents_with_one_name_is_used(tmp_path: Path) -> None:
    twin = AgentDefinition(name="Helper", description="Another.")
    loader = AgentLoader([tmp_path], builtin=[BUILTIN, twin])
    assert loader.get_agent_now("helper") is BUILTIN
    assert loader.load_agents_now().shadowed == (ShadowedAgent("Helper", None, None),)


def test_the_error_for_an_unknown_name_lists_all_names_similar_ones_first(places: Places) -> None:
    for name in ("architect", "code-reviewer", "writer"):
        write(places.project / f".claude/agents/{name}.md", name)
    with pytest.raises(AgentNotFoundError) as caught:
        places.loader().get_agent_now("code-reviewr")
    assert caught.value.available == ("code-reviewer", "architect", "writer")
    assert str(caught.value).startswith(
        "[kantan-agents][E32] Agent not found: code-reviewr (available: code-"
    )


async def test_get_agent_async_raises_the_same_error_for_an_unknown_name(places: Places) -> None:
    with pytest.raises(AgentNotFoundError, match="available: none"):
        await places.loader().get_agent("nobody")


def test_a_cache_of_a_negative_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match="cache_size"):
        AgentLoader([tmp_path], cache_size=-1)


# Directory trees


def names(directory: Path) -> list[str]:
    loader = AgentLoader([directory])
    return [agent.name for agent in loader.load_agents_now()]


def test_files_are_found_in_subdirectories(tmp_path: Path) -> None:
    for number, place in enumerate(["a.md", "x/b.MD", "x/y/z/c.Md", "notes.md/d.md", "README.txt"]):
        write(tmp_path / place, f"agent-{number}")
    assert names(tmp_path) == ["agent-0", "agent-1", "agent-2", "agent-3"]


def test_names_that_begin_with_a_dot_are_skipped(tmp_path: Path) -> None:
    for place in (".hidden.md", ".md", ".git/a.md", "x/.#lock.md"):
        write(tmp_path / place, "hidden")
    assert names(tmp_path) == []


def test_a_directory_tree_of_any_depth_is_read(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(150):
        deep /= "d"
    write(deep / "a.md", "deep")
    assert names(tmp_path) == ["deep"]


def test_within_one_tree_the_first_path_wins(tmp_path: Path) -> None:
    for place in ("b.md", "a/z.md", "a.md", "a/b/c.md"):
        write(tmp_path / place, "same", place)
    catalog = AgentLoader([tmp_path]).load_agents_now()
    assert [agent.system_prompt for agent in catalog] == ["a/b/c.md"]
    assert [each.path for each in catalog.shadowed] == [
        tmp_path / place for place in ("a/z.md", "a.md", "b.md")
    ]


def test_links_to_files_and_directories_are_followed(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere/a.md", "a")
    write(tmp_path / "other/b.txt", "b")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/dir").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "agents/b.md").symlink_to(tmp_path / "other/b.txt")
    assert names(tmp_path / "agents") == ["a", "b"]


def test_loops_of_links_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path / "x/a.md", "a")
    (tmp_path / "x/up").symlink_to(tmp_path)
    (tmp_path / "x/self").symlink_to(tmp_path / "x/self")
    catalog = AgentLoader([tmp_path]).load_agents_now()
    assert ([agent.name for agent in catalog], catalog.shadowed, catalog.problems) == (["a"], (), ())


def test_a_directory_reached_by_two_paths_is_listed_once(tmp_path: Path) -> None:
    write(tmp_path / "one/x/a.md", "a")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    catalog = AgentLoader([tmp_path / "one/x", tmp_path / "one", tmp_path / "two"]).load_agents_now()
    assert ([agent.path for agent in catalog], catalog.shadowed) == ([tmp_path / "one/x/a.md"], ())


def test_a_broken_or_circular_link_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    problems = AgentLoader([tmp_path]).load_agents_now().problems
    assert [str(problem) for problem in problems] == [
        f"{tmp_path}/gone.md:1: the target of the link does not exist",
        f"{tmp_path}/self.md:1: {os.strerror(errno.ELOOP)}",
    ]


def test_a_file_given_as_a_directory_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "a.md", "a")
    (problem,) = AgentLoader([path]).load_agents_now().problems
    assert str(problem) == f"{path}:1: the directory cannot be read: Not a directory"


def test_an_impossible_directory_path_is_a_problem(tmp_path: Path) -> None:
    (problem,) = AgentLoader([tmp_path / "a\0b"]).load_agents_now().problems
    assert problem.message == "the directory cannot be read: Invalid argument"


def test_a_pipe_is_a_problem_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    write(tmp_path / "a.md", "a")
    catalog = AgentLoader([tmp_path]).load_agents_now()
    assert [str(problem) for problem in catalog.problems] == [f"{tmp_path}/pipe.md:1: is not a regular file"]
    assert catalog.names() == ("a",)


def test_a_file_name_that_is_not_text_is_loaded_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.md")
    write_text(Path(path), "---\nnothing\n---\n")
    (problem,) = AgentLoader([tmp_path]).load_agents_now().problems
    assert str(problem.path) == path
    (record,) = caplog.records
    assert "\\udcff.md" in vars(record)["problems"][0]


# Missing permissions


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_an_unreadable_file_is_a_problem_and_the_others_load(open_to_all: Path) -> None:
    write(open_to_all / "closed/a.md", "a")
    secret = write(open_to_all / "secret.md", "secret")
    write(open_to_all / "open.md", "open")
    loader = AgentLoader([open_to_all], recheck_seconds=0)
    loader.load_agents_now()
    (open_to_all / "closed").chmod(0)
    secret.chmod(0)
    with without_root():
        catalog = loader.load_agents_now()
    assert [agent.name for agent in catalog] == ["open"]
    assert [(str(problem), problem.severity, problem.code) for problem in catalog.problems] == [
        (f"{open_to_all}/closed:1: the directory cannot be read: Permission denied", "error", "E30"),
        (f"{open_to_all}/secret.md:1: Permission denied", "error", "E30"),
    ]
    (open_to_all / "closed").chmod(0o755)
    secret.chmod(0o644)
    with without_root():
        assert loader.get_agent_now("secret").name == "secret"
        assert loader.get_agent_now("a").name == "a"


def test_a_directory_below_one_without_access_is_a_problem(open_to_all: Path) -> None:
    write(open_to_all / "closed/agents/a.md", "a")
    loader = AgentLoader([open_to_all / "closed/agents"])
    loader.load_agents_now()
    (open_to_all / "closed").chmod(0)
    with without_root():
        (problem,) = loader.load_agents_now().problems
    (open_to_all / "closed").chmod(0o755)
    assert problem.message == "the directory cannot be read: Permission denied"


# Files that disappear


def test_a_file_deleted_between_listing_and_reading_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.md", "a")
    write(tmp_path / "b.md", "b")

    def too_late(path: str, limit: int) -> tuple[bytes, os.stat_result]:
        if path.endswith("a.md"):
            Path(path).unlink()
        return read_regular_file(path, limit)

    monkeypatch.setattr("kantan_agents.subagent_files.loading.cache.read_regular_file", too_late)
    catalog = AgentLoader([tmp_path]).load_agents_now()
    assert ([agent.name for agent in catalog], catalog.problems) == (["b"], ())


def test_files_created_and_deleted_during_loads_do_not_affect_others(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / f"{number}/stays.md", f"stays-{number}")
    done = threading.Event()

    def churn() -> None:
        fleeting = agent_text("fleeting").encode()
        for number in itertools.cycle(range(5)):
            directory = tmp_path / f"{number}/fleeting"
            directory.mkdir()
            (directory / "new").write_bytes(fleeting)
            (directory / "new").rename(directory / "fleeting.md")
            (directory / "fleeting.md").unlink()
            directory.rmdir()
            if done.is_set():
                return

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        loader = AgentLoader([tmp_path], recheck_seconds=0)
        for _ in range(60):
            catalog = loader.load_agents_now()
            assert catalog.problems == ()
            assert {agent.name for agent in catalog} - {"fleeting"} == {
                f"stays-{number}" for number in range(5)
            }
    finally:
        done.set()
        thread.join()
    assert len(loader.load_agents_now()) == 5


# Files that are not agents


@pytest.mark.parametrize(
    "text",
    [
        "# Agents\n\nHow to write them:\n\n```\n---\nname: a\ndescription: b\n---\n```\n",
        "Words.\n",
        "",
        "\ufeff",
    ],
)
def test_a_markdown_file_without_frontmatter_is_not_an_agent_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    write(tmp_path / "a.md", "a")
    readme = write_text(tmp_path / "README.md", text)
    catalog = AgentLoader([tmp_path]).load_agents_now()
    assert [agent.name for agent in catalog] == ["a"]
    (problem,) = catalog.problems
    assert (problem.path, problem.severity) == (readme, "warning")
    assert problem.message == "is not an agent: the file has no frontmatter"
    assert caplog.records == []
    with pytest.raises(AgentFileError, match="has no frontmatter"):
        AgentDefinition.load(readme)


@pytest.mark.parametrize(
    "text",
    [
        "name: a\ndescription: b\n---\nP",
        "Here it is:\n\n---\nname: a\ndescription: b\n---\nP",
        "```markdown\n---\nname: a\n---\n```",
        "--\nname: a\n--\nP",
        "---\n- a\n---\n",
        "---\nname: a\n---\n".encode("utf-16"),
    ],
)
def test_a_file_that_was_meant_as_an_agent_is_an_error(tmp_path: Path, text: str | bytes) -> None:
    write_text(tmp_path / "a.md", text)
    assert {problem.severity for problem in AgentLoader([tmp_path]).load_agents_now().problems} == {"error"}


def test_a_broken_file_is_reported_with_its_line_and_the_others_load(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "a")
    write_text(tmp_path / "b.md", "name: b\ndescription: b\n---\n")
    write_text(tmp_path / "c.md", "---\ntools: Read\n---\n\nHi.")
    write_text(tmp_path / "d.md", b"---\nname: \xff\n---\n")
    catalog = AgentLoader([tmp_path]).load_agents_now()
    assert [agent.name for agent in catalog] == ["a"]
    found = {(problem.path, problem.severity, problem.code) for problem in catalog.problems}
    codes = (("b", "E30"), ("c", "E31"), ("d", "E30"))
    assert found == {(tmp_path / f"{name}.md", "error", code) for name, code in codes}
    about_c = [problem.message for problem in catalog.problems if problem.path == tmp_path / "c.md"]
    assert len(about_c) == 2


def test_an_agent_whose_only_file_is_broken_is_not_found(tmp_path: Path) -> None:
    write_text(tmp_path / "a.md", "---\nname: a\n---\n")
    with pytest.raises(AgentNotFoundError):
        AgentLoader([tmp_path]).get_agent_now("a")


def test_a_file_is_never_read_beyond_the_size_limit(tmp_path: Path, reads: list[str]) -> None:
    with (tmp_path / "huge.md").open("wb") as file:
        file.truncate(10**12)
    (problem,) = AgentLoader([tmp_path]).load_agents_now().problems
    assert problem.message == "is larger than 4 MiB"


def test_new_errors_are_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = write_text(tmp_path / "bad.md", "---\nnothing\n---\n")
    loader = AgentLoader([tmp_path])
    for _ in range(2):
        loader.load_agents_now()
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("kantan_agents.definitions", "WARNING")
    assert (vars(record)["count"], f"{bad}:2: " in vars(record)["problems"][0]) == (1, True)
    write_text(tmp_path / "worse.md", "---\nnothing\n---\n")
    loader.load_agents_now()
    assert [vars(record)["count"] for record in caplog.records] == [1, 1]
    assert "worse.md" in vars(caplog.records[1])["problems"][0]


@pytest.mark.parametrize("options", [{"recheck_seconds": -1}, {"cache_size": 1.5}, {"builtin": ["reviewer"]}])
def test_an_invalid_option_is_refused(options: Any) -> None:
    with pytest.raises(InvalidOptionError, match=next(iter(options))):
        AgentLoader([], **options)
