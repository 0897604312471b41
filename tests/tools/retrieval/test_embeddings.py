"""Embeddings: from a function, from a model over HTTP, and cached on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from kantan_agents.errors import InvalidOptionError, RetrievalError
from kantan_agents.tools.retrieval import EmbeddingRetriever, ToolDocument
from tests.programs import Preloaded
from tests.tools.retrieval.conftest import calling, fruit_agent, shown
from tests.tools.retrieval.loopback import Loopback

DOCUMENTS = [ToolDocument("sun", "warm"), ToolDocument("snow", "cold"), ToolDocument("none")]


def meaning(texts: list[str]) -> list[list[float]]:
    """Return warmth and coldness of texts."""
    return [
        [float("warm" in text or "heat" in text), float("cold" in text or "ice" in text), 0.01]
        for text in texts
    ]


class Counting:
    def __init__(self) -> None:
        self.texts: list[str] = []

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return meaning(texts)


async def found(retriever: EmbeddingRetriever, query: str, documents: Any = DOCUMENTS) -> list[str]:
    index = await retriever.index(documents)
    return [match.name for match in await index.search(query, 2)]  # type: ignore[misc]


@pytest.mark.parametrize("embed", [meaning, Counting()])
async def test_tools_with_a_similar_meaning_are_found(embed: Any) -> None:
    assert (await found(EmbeddingRetriever(embed, batch=2), "ice"))[0] == "snow"
    assert (await found(EmbeddingRetriever(embed), "heat"))[0] == "sun"
    assert await found(EmbeddingRetriever(embed), "heat", []) == []


async def test_vectors_are_stored_by_text_and_model(tmp_path: Path) -> None:
    file = tmp_path / "new" / "vectors"
    embed = Counting()
    for _ in range(2):
        assert (await found(EmbeddingRetriever(embed, cache=file, model_name="m"), "ice"))[0] == "snow"
    assert [text for text in embed.texts if text != "ice"] == [each.text for each in DOCUMENTS]
    changed = [*DOCUMENTS[:2], ToolDocument("none", "icy")]
    await EmbeddingRetriever(embed, cache=file, model_name="m").index(changed)
    assert embed.texts[-1] == "none\nicy"
    await EmbeddingRetriever(embed, cache=file, model_name="other").index(DOCUMENTS)
    assert embed.texts[-3:] == [each.text for each in DOCUMENTS]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + b"\xff" * 5_000])
async def test_a_damaged_file_is_ignored(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "vectors"
    file.write_bytes(content)
    embed = Counting()
    assert (await found(EmbeddingRetriever(embed, cache=file, model_name="m"), "ice"))[0] == "snow"


async def test_invalid_vectors_in_the_file_are_computed_again(tmp_path: Path) -> None:
    file = tmp_path / "vectors"
    embed = Counting()
    retriever = EmbeddingRetriever(embed, cache=file, model_name="m")
    await retriever.index(DOCUMENTS)
    with sqlite3.connect(file) as opened:
        opened.execute("UPDATE vectors SET vector = x'00'")
    opened.close()
    assert (await found(retriever, "ice"))[0] == "snow"


async def test_a_directory_in_place_of_the_file_is_ignored(tmp_path: Path) -> None:
    retriever = EmbeddingRetriever(meaning, cache=tmp_path, model_name="m")
    assert (await found(retriever, "ice"))[0] == "snow"


_WRITE = """
import sys
from pathlib import Path
from kantan_agents.tools.retrieval.retrievers.vector_cache import VectorCache
cache = VectorCache(Path(sys.argv[1]))
for number in range(8):
    cache.write({b"%s-%d" % (sys.argv[2].encode(), number): b"\\0\\0\\0\\0"})
"""


def test_several_processes_may_write_at_the_same_time(tmp_path: Path, preloaded: Preloaded) -> None:
    from kantan_agents.tools.retrieval.retrievers.vector_cache import VectorCache

    file = tmp_path / "vectors"
    writers = [preloaded.popen(["-c", _WRITE, file, name]) for name in "ab"]
    assert [(writer.communicate(60)[1], writer.returncode) for writer in writers] == [(b"", 0), (b"", 0)]
    keys = [f"{name}-{number}".encode() for name in "ab" for number in range(8)]
    assert len(VectorCache(file).read(keys)) == 16


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        ([[1.0, 2.0]], "must return 3 vectors of numbers, not an array of shape"),
        ([[1.0], [1.0, 2.0], [1.0]], "all of one length"),
        ([["a"], ["b"], ["c"]], "vectors of numbers"),
        ([[1.0], [float("nan")], [1.0]], "not finite"),
        ([[], [], []], "must return 3 vectors"),
        (None, "must return"),
        ([1.0, 2.0, 3.0], "must return 3 vectors"),
    ],
)
async def test_wrong_vectors_are_errors(vectors: Any, reason: str) -> None:
    with pytest.raises(RetrievalError, match=reason):
        await EmbeddingRetriever(lambda texts: vectors).index(DOCUMENTS)


async def test_a_model_that_has_changed_under_its_name_is_an_error() -> None:
    lengths = iter([2, 2, 3])
    retriever = EmbeddingRetriever(lambda texts: [[1.0] * next(lengths)] * len(texts))
    index = await retriever.index(DOCUMENTS)
    assert await index.search("x", 1)  # type: ignore[misc]
    with pytest.raises(RetrievalError, match="has 3 numbers, those of the tools 2"):
        await index.search("y", 1)  # type: ignore[misc]


async def test_the_index_of_a_changed_model_is_created_again(tmp_path: Path) -> None:
    options: dict[str, Any] = {"cache": tmp_path / "vectors", "model_name": "m"}
    await fruit_agent(
        None, retriever=EmbeddingRetriever(lambda texts: [[1.0]] * len(texts), **options)
    ).select_tools("x")
    agent = fruit_agent(None, retriever=EmbeddingRetriever(meaning, **options))
    first, second = await agent.select_tools("x"), await agent.select_tools("x")
    assert "has 3 numbers, those of the tools 1" in str(first.failed)
    assert second.failed is None
    assert len(second.shown) == 2


@pytest.mark.parametrize("vector", ["00000000", "0000c07f0000803f0000803f"])
async def test_stored_vectors_of_another_length_or_not_finite_are_computed_again(
    tmp_path: Path, vector: str
) -> None:
    file = tmp_path / "vectors"
    embed = Counting()
    retriever = EmbeddingRetriever(embed, cache=file, model_name="m")
    await retriever.index(DOCUMENTS)
    with sqlite3.connect(file) as opened:
        opened.execute(f"UPDATE vectors SET vector = x'{vector}' WHERE key = (SELECT min(key) FROM vectors)")
    opened.close()
    for _ in range(2):
        assert (await found(retriever, "ice"))[0] == "snow"
    embed.texts.clear()
    await retriever.index(DOCUMENTS)
    assert embed.texts == []


async def test_a_database_of_another_application_is_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "theirs"
    with sqlite3.connect(file) as opened:
        opened.execute("CREATE TABLE mine (a)")
    opened.close()
    before = file.read_bytes()
    retriever = EmbeddingRetriever(meaning, cache=file, model_name="m")
    assert (await found(retriever, "ice"))[0] == "snow"
    assert file.read_bytes() == before


async def test_a_text_is_embedded_once_for_repeated_searches() -> None:
    embed = Counting()
    agent = fruit_agent(None, retriever=EmbeddingRetriever(embed))
    await agent.select_tools("warm", {"tool_rules": {"allow": ["fig", "plum", "melon"]}})
    await agent.select_tools("warm")
    assert embed.texts.count("warm") == 1


@pytest.mark.parametrize(
    "options", [{"embed": ""}, {"embed": 1}, {"embed": meaning, "cache": "f"}, {"embed": meaning, "batch": 0}]
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOptionError):
        EmbeddingRetriever(**options)


@pytest.fixture
def embeddings_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A provider's /embeddings on 127.0.0.1, where kantan-llm finds OpenAI."""
    bodies: list[Any] = []

    async def embed(request: Request) -> JSONResponse:
        body = await request.json()
        bodies.append(body)
        data = [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(meaning(body["input"]))
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return JSONResponse(
            {"object": "list", "data": data[::-1], "model": body["model"], "usage": usage},
            headers={"connection": "close"},
        )

    with Loopback(Starlette(routes=[Route("/v1/embeddings", embed, methods=["POST"])])) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "offline")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield bodies


@pytest.mark.parametrize("name", ["text-embedding-3-small", "openai/text-embedding-3-small"])
async def test_a_model_is_called_over_http_in_batches(embeddings_api: list[Any], name: str) -> None:
    model = calling()
    retriever = EmbeddingRetriever(name, batch=5)
    await fruit_agent(model, retriever=retriever).run_async("warm \ud83d")
    assert len(shown(model)[0]) == 3
    assert [len(body["input"]) for body in embeddings_api] == [5, 3, 1]
    assert {body["model"] for body in embeddings_api} == {"text-embedding-3-small"}


async def test_an_unknown_model_name_shows_all_tools() -> None:
    model = calling()
    await fruit_agent(model, retriever=EmbeddingRetriever("no-such-model")).run_async("warm")
    assert len(shown(model)[0]) == 8
