"""The labelled set of the benchmark is valid, and the retrievers reach their goals on it."""

from __future__ import annotations

from benchmarks.retrieval_data import LANGUAGES, held_out_requests, labelled_requests, labelled_tools
from kantan_agents.tools.retrieval import BM25Retriever
from kantan_agents.tools.retrieval.retrievers.retriever import document_of


async def test_the_labelled_set_is_valid_and_the_goals_are_met() -> None:
    tools = labelled_tools()
    names = {tool.name for tool in tools}
    assert len(tools) == len(names) == 1_000
    index = BM25Retriever().index([document_of(tool) for tool in tools])
    for language, goal in zip(LANGUAGES, (0.95, 0.90, 0.90), strict=True):
        requests = labelled_requests(language)
        assert len({request.text for request in requests}) == len(requests) >= 70
        found = 0
        for request in requests:
            assert request.tools <= names, request.text
            matches = await index.search(request.text, 8)  # type: ignore[misc]
            found += any(match.name in request.tools for match in matches)
        assert found / len(requests) >= goal, language


def test_the_held_out_set_is_valid() -> None:
    names = {tool.name for tool in labelled_tools()}
    tuned_on = {request.text for language in LANGUAGES for request in labelled_requests(language)}
    requests = held_out_requests()
    assert len({request.text for request in requests} - tuned_on) == len(requests) >= 24
    assert all(request.tools <= names for request in requests)
