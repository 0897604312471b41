"""Pages of a search: together they are the whole result, whatever the filter and the size of a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents import TraceStore
from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from tests.traces.store.sample_database import SampleDatabase, open_sample

FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "a frequent word": {"keywords": ["sunny"]},
    "a rare word": {"keywords": ["hurricane"]},
    "a short word": {"keywords": ["su"]},
    "a word that is nowhere": {"keywords": ["snow"]},
    "a prompt": {"prompt": "p1"},
    "a prompt and a word": {"prompt": "p1", "keywords": ["sunny"]},
    "no error": {"has_failed": False},
}


def fill(database: SampleDatabase) -> None:
    for number in range(150):
        weather = "hurricane" if number % 40 == 3 else "sunny"
        database.run(f"{number} {weather}", prompt_name=f"p{number % 3}")


@pytest.fixture(scope="module", params=["indexed", "plain", "searched"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("paging") / "t.db"
    with open_sample(path, indexed=request.param != "plain") as database:
        fill(database)
        store = TraceStore(path)
        if request.param == "searched":
            store.build_index()
        yield store


def pages(store: TraceStore, size: int, **filters: Any) -> list[list[str]]:
    found: list[list[str]] = []
    before = None
    while page := [one.trace_id for one in store.traces(limit=size, before=before, **filters)]:
        found.append(page)
        before = page[-1]
    return found


@pytest.mark.parametrize("size", [1, 7, 64, 1_000])
@pytest.mark.parametrize("name", FILTERS)
def test_pages_are_the_whole_result(store: TraceStore, name: str, size: int) -> None:
    whole = [one.trace_id for one in store.traces(limit=None, **FILTERS[name])]
    found = pages(store, size, **FILTERS[name])
    assert [trace_id for page in found for trace_id in page] == whole
    assert all(len(page) == size for page in found[:-1])
    assert (name == "a word that is nowhere") == (not whole)


def test_runs_that_are_recorded_meanwhile_do_not_move_the_next_page(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        fill(database)
        store = TraceStore(database.path)
        first = store.traces(limit=10)
        expected = store.traces(limit=20)[10:]
        database.run("a new one")
        assert store.traces(limit=10, before=first[-1].trace_id) == expected


async def test_the_async_method_pages_too(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        fill(database)
        store = TraceStore(database.path)
        newest = (await store.traces_async(limit=1))[0].trace_id
        assert await store.traces_async(limit=3, before=newest) == store.traces(limit=4)[1:]


def test_an_unknown_trace_is_an_error(store: TraceStore) -> None:
    with pytest.raises(TraceNotFoundError, match="trace_none") as caught:
        store.traces(before="trace_none")
    assert caught.value.code == "E61"
    with pytest.raises(InvalidOptionError, match="before"):
        store.traces(before=7)
