"""A link in the place of the default trace database, as a repository may have one."""

from __future__ import annotations

from pathlib import Path

import pytest

from kantan_agents import SQLiteRecorder, record_traces
from kantan_agents.cli.run.recording import RecordingTarget, checked
from kantan_agents.errors import FileArgumentError, TraceDatabaseError
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.store.connection import changing


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone" / "traces.sqlite3").symlink_to("../elsewhere")
    monkeypatch.chdir(tmp_path / "clone")
    return tmp_path / "elsewhere"


@pytest.mark.parametrize("path", ["traces.sqlite3", "./traces.sqlite3", Path("traces.sqlite3")])
def test_a_link_in_its_place_is_not_followed(target: Path, path: str | Path) -> None:
    with pytest.raises(TraceDatabaseError, match="name the file that it leads to"):
        record_traces(path)
    with pytest.raises(TraceDatabaseError, match="symbolic link"), changing(Path(path)):
        pass
    with pytest.raises(PermissionError, match="symbolic link"):
        backend_of(Path(path)).make_tables()
    assert not target.exists()


def test_a_run_is_not_recorded_where_a_link_leads(target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(RecordingTarget(Path("traces.sqlite3"), required=False)) is None
    assert "the run is not recorded" in capsys.readouterr().err
    with pytest.raises(FileArgumentError, match="symbolic link"):
        checked(RecordingTarget(Path("traces.sqlite3"), required=True))
    assert not target.exists()


def test_a_link_at_a_path_that_is_named_is_followed(target: Path, tmp_path: Path) -> None:
    SQLiteRecorder(tmp_path / "clone" / "traces.sqlite3").shutdown()
    assert target.exists()
