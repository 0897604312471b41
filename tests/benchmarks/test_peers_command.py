"""``python -m benchmarks``: its options and its environments."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import attrs
import pytest

import benchmarks.__main__ as command
from benchmarks.__main__ import MISUSED, RESULTS, main
from benchmarks.growth import CURVES
from benchmarks.peers import comparison
from benchmarks.peers.catalog import WORKLOADS
from benchmarks.peers.compared import FRAMEWORKS, OURS, PLAIN, Framework
from benchmarks.peers.environments import NotInstalledError, environment_folder, prepared
from benchmarks.peers.output import write
from benchmarks.peers.results import Cell, Results, Row
from benchmarks.peers.rounds import Spread

NAMES = [workload.id for workload in WORKLOADS] + [curve.name for curve in CURVES]


def framework(name: str = "one", *requirements: str, **options: Any) -> Framework:
    return Framework(name, name.title(), lambda: requirements, **options)


def test_names_are_listed_and_unique(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == NAMES
    assert len({*listed}) == len(listed)


def test_an_unknown_workload_is_rejected_with_a_list_of_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--quick", "--only", "one_turn", "nonsense"]) == MISUSED
    said = capsys.readouterr().err
    assert "There is no nonsense;" in said
    assert all(name in said for name in NAMES)


def test_an_unknown_peer_is_rejected_with_a_list_of_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--quick", "--peers", "nonsense"]) == MISUSED
    assert "there are: kantan_agents_published, pydantic_ai, langgraph" in capsys.readouterr().err


def test_other_requirements_need_another_environment(tmp_path: Path) -> None:
    decides = tmp_path / "pyproject.toml"
    decides.write_text("a", encoding="utf-8")
    first = environment_folder(framework("one", "a==1", files=(decides,)), tmp_path)
    assert first == environment_folder(framework("one", "a==1", files=(decides,)), tmp_path)
    assert first != environment_folder(framework("one", "a==2", files=(decides,)), tmp_path)
    decides.write_text("b", encoding="utf-8")
    assert first != environment_folder(framework("one", "a==1", files=(decides,)), tmp_path)


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, ...]] = []

    def run(command: tuple[str, ...], **_: Any) -> None:  # a real one takes a second
        called.append(command)
        if command[1] == "venv":
            Path(command[-1]).mkdir(parents=True)

    monkeypatch.setattr("subprocess.run", run)
    said: list[str] = []
    python = prepared(framework("one", "a==1", "b"), tmp_path, said.append)
    assert python.is_relative_to(environment_folder(framework("one", "a==1", "b"), tmp_path))
    assert prepared(framework("one", "a==1", "b"), tmp_path, said.append) == python
    assert len(said) == 1
    (_, made, *_), (_, _, installed, *_, for_python, one, two) = called
    assert (made, installed, for_python, one, two) == ("venv", "install", str(python), "a==1", "b")


def test_a_failed_installation_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(command: tuple[str, ...], **_: Any) -> None:
        if command[1] == "venv":
            Path(command[-1]).mkdir(parents=True)
            return
        raise subprocess.CalledProcessError(1, command, stderr="no such package")

    monkeypatch.setattr("subprocess.run", refuse)
    with pytest.raises(NotInstalledError, match="no such package"):
        prepared(framework("one", "nonsense"), tmp_path, lambda _: None)
    assert not [*tmp_path.iterdir()]


def test_a_peer_that_cannot_be_installed_is_left_out_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_required(asked: Framework, folder: Path, _say: Any) -> Path:
        if not asked.required:
            raise NotInstalledError("no such package")
        return folder

    monkeypatch.setattr(comparison, "prepared", only_required)
    said: list[str] = []
    pythons, left_out = comparison._pythons(["pydantic_ai"], tmp_path, said.append)
    assert [*pythons] == [PLAIN, OURS]
    assert left_out["pydantic_ai"] == "it cannot be installed"
    assert left_out["langgraph"] == "not asked for"
    assert said == ["LEFT OUT: pydantic-ai cannot be installed:\nno such package"]


def test_without_a_required_environment_there_is_no_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "FRAMEWORKS", [attrs.evolve(FRAMEWORKS[0], required=True)])

    def refuse(*_args: Any) -> Path:
        raise NotInstalledError("no such package")

    monkeypatch.setattr(comparison, "prepared", refuse)
    with pytest.raises(NotInstalledError):
        comparison._pythons([], tmp_path, lambda _: None)


@pytest.mark.parametrize(
    "more", [["--quick"], ["--output", "x"], ["--only", "tools"], ["--only", "one_turn", "tools"], []]
)
def test_only_fully_measured_workloads_update_the_published_results(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    only = [] if "--only" in more or not more else ["--only", "one_turn"]
    assert main(["--update", *only, *more]) == 2
    assert "--update is for workloads that are measured in full" in capsys.readouterr().err


def test_partial_results_do_not_replace_the_published_ones(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--quick"], ["--only", "one_turn"], ["--peers", "langgraph"]):
        assert main([*more, "--output", str(RESULTS)]) == MISUSED
        assert "give --update" in capsys.readouterr().err


def made_up(*rows: Row, **options: Any) -> Results:
    return Results("2026-01-02", "a machine", 21, 3, {PLAIN: {}, OURS: {}}, {}, rows, **options)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use another folder for the published results, and do not write the page."""
    cell = Cell(value=Spread(1.0, 1.0, 1.0), ratio=Spread(1.0, 1.0, 1.0))
    write(made_up(Row("one_turn", {PLAIN: cell, OURS: cell})), tmp_path)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(command, "written_page", lambda _: tmp_path)
    return tmp_path


def test_an_update_in_which_every_workload_failed_changes_nothing(
    published: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (published / "peers.json").read_bytes()
    newer = attrs.evolve(made_up(failed={"one_turn": "it died\nat once"}), measured_on="2027-01-01")
    monkeypatch.setattr(command, "compare", lambda *_: newer)
    assert main(["--only", "one_turn", "--update"]) == 1
    assert (published / "peers.json").read_bytes() == before
    assert "FAILED one_turn: it died" in capsys.readouterr().err


@pytest.mark.usefixtures("published")
def test_an_impossible_update_is_reported_before_measuring(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "compare", lambda *_: pytest.fail("it was measured"))
    assert main(["--only", "one_turn", "tool_turn", "--update"]) == 1
    assert "no row tool_turn: a whole run is needed" in capsys.readouterr().err
