"""The interface behind the table of runs: filters, pages, and bad input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kantan_agents.page import traces_app
from kantan_agents.page.api.runs import words_in
from tests.page.sample import make
from tests.page.served import apart


@pytest.fixture
def client(path: Path) -> Iterator[TestClient]:
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        yield client


def inputs(client: TestClient, query: str) -> list[str]:
    answer = client.get(f"/api/runs?{query}")
    assert answer.status_code == 200
    return [run["input"] for run in answer.json()["runs"]]


QUESTIONS = ["Where is order 102", "Where is order 101", "Where is order 100"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("words=refund", ["Please refund 7"]),
        ("words=refund%20please", ["Please refund 7"]),
        ('words="is%20order%20101"', ["Where is order 101"]),
        ("agent=judge", ["Is it kind?"]),
        ("prompt=help&version=v2&limit=1", ["Please refund 7"]),
        ("version=v1", []),
        ("tool=refund_order", ["Please refund 7"]),
        ("errors=failed", ["This is broken 1"]),
        ("errors=any", ["Where is order 13", "This is broken 1"]),
        ("errors=none&agent=support", ["Please refund 7", *QUESTIONS]),
        ("denied=1", ["Please refund 7"]),
        ("score_below=0.5", ["Is it kind?"]),
        ("score_below=0.3", []),
        ("from=2000-01-01T00:00:00Z&words=refund", ["Please refund 7"]),
        ("to=2000-01-01T00:00:00%2B00:00", []),
        ("agent=&words=&denied=0&limit=1", ["Please refund 7"]),
    ],
)
def test_every_filter_finds_its_runs(client: TestClient, query: str, expected: list[str]) -> None:
    assert inputs(client, query) == expected


def test_pages_follow_one_another(client: TestClient) -> None:
    found: list[str] = []
    before = ""
    while True:
        page = client.get(f"/api/runs?limit=2&before={before}").json()
        found += [run["input"] for run in page["runs"]]
        if page["before"] is None:
            break
        before = page["before"]
    assert found == inputs(client, "")
    assert len(found) == 7


def test_a_row_has_what_the_table_shows(client: TestClient) -> None:
    (run,) = client.get("/api/runs?errors=failed").json()["runs"]
    assert (run["agent"], run["prompt"], run["version"]) == ("support", "help", "v2")
    assert run["status"] == "failed" and "expired" in run["error"]
    assert run["started_at"].endswith("+00:00") and run["seconds"] > 0
    (recovered,) = client.get("/api/runs?words=%22order 13%22").json()["runs"]
    assert recovered["status"] == "recovered" and recovered["tokens"] > 0


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("limit=1000", "limit"),
        ("errors=some", "errors"),
        ("denied=yes", "denied"),
        ("score_below=low", "score_below"),
        ("score_below=nan", "score_below"),
        ("from=yesterday", "from"),
        ("to=2026-01-01T00:00:00", "to"),
    ],
)
def test_the_error_for_a_bad_value_names_it(client: TestClient, query: str, name: str) -> None:
    answer = client.get(f"/api/runs?{query}")
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "E75" and f"option {name}: must" in error["message"]


def test_an_unknown_page_is_not_found(client: TestClient) -> None:
    answer = client.get("/api/runs?before=trace_none")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "E61")


def test_the_filter_offers_the_names_that_there_are(client: TestClient) -> None:
    assert client.get("/api/choices").json() == {
        "agent": ["judge", "support"],
        "prompt": ["help", "judge"],
        "version": ["v2"],
        "tool": ["look_up_order", "refund_order"],
    }


def test_the_version_changes_when_something_is_written(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    apart(lambda: make(path, 1))
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        first = client.get("/api/version").json()
        assert client.get("/api/version").json() == first
        apart(lambda: make(path, 1))
        assert client.get("/api/version").json() != first
        path.unlink()
        gone = client.get("/api/version")
        assert gone.json()["error"]["code"] == "E60" and "no such file" in gone.json()["error"]["message"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("  a  b ", ["a", "b"]),
        ('"a b" c', ["a b", "c"]),
        ('say "not closed', ["say", '"not', "closed"]),
        ("東京 😀", ["東京", "😀"]),
        ('""', ['""']),
    ],
)
def test_words_are_read_while_they_are_typed(text: str, words: list[str]) -> None:
    assert words_in(text) == words


def test_a_foreign_file_is_refused_when_the_page_is_made(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 50)
    with pytest.raises(Exception, match="E60"):
        traces_app(tmp_path / "notes.txt")


def test_the_store_itself_can_be_given(path: Path) -> None:
    from kantan_agents import TraceStore

    with TestClient(traces_app(TraceStore(path)), base_url="http://127.0.0.1") as client:
        found: Any = client.get("/api/runs?limit=1").json()
    assert len(found["runs"]) == 1
