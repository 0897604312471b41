"""No embedding model is asked in a replay, though it is not a model of the agent."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent, ToolRetrieval, replay_async
from kantan_agents.errors import NotReplayableError
from kantan_agents.testing import OfflineServer
from kantan_agents.tools.retrieval import EmbeddingRetriever
from kantan_agents.tools.retrieval.retrievers import embeddings
from tests.lab.replay.kinds_of_runs import scripted, tool
from tests.lab.replay.taping import Case, Tapes

MANY = [tool(f"t{number}") for number in range(30)]


def by_length(texts: list[str]) -> list[list[float]]:
    return [[1.0, float(len(text))] for text in texts]


def agent(live: bool, embed: Any) -> Agent[Any]:
    retrieval = ToolRetrieval(top_n=3, retriever=EmbeddingRetriever(embed))
    return Agent("a", "Hi", model=scripted(live, "ok"), tools=MANY, tool_retrieval=retrieval)


@pytest.mark.parametrize("ignore", [(), "tools"])
async def test_a_run_whose_tools_an_embedding_model_has_found_is_refused(
    tapes: Tapes, monkeypatch: pytest.MonkeyPatch, ignore: Any
) -> None:
    taped = await tapes.record(Case(agent(True, by_length)))
    with OfflineServer() as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        with pytest.raises(NotReplayableError, match=r"E93.*embedding model 'text-embedding-3-small'"):
            await replay_async(taped.recording, agent(False, "text-embedding-3-small"), ignore=ignore)


async def test_real_runs_ask_the_model_after_a_refused_replay(
    tapes: Tapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    taped = await tapes.record(Case(agent(True, by_length)))
    asked: list[str] = []

    async def clients(name: str) -> Any:
        asked.append(name)
        raise RuntimeError("away")

    monkeypatch.setattr(embeddings, "embedding_clients", clients)
    both = agent(True, "text-embedding-3-small")
    with pytest.raises(NotReplayableError):
        await replay_async(taped.recording, both)
    assert not asked
    await both.run_async("q")
    assert asked == ["text-embedding-3-small"]


async def test_a_function_that_embeds_is_code_of_the_user_and_runs(tapes: Tapes) -> None:
    taped = await tapes.record(Case(agent(True, by_length)))
    await tapes.replays(taped, agent(False, by_length))
