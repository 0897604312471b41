"""BM25: order, ties, languages, and odd input."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.tools.retrieval import BM25Retriever, ToolDocument
from tests.tools.retrieval.conftest import tool

DOCUMENTS = [
    ToolDocument("create_invoice", "Bills a customer.", "amount due_date"),
    ToolDocument("delete_invoice", "Removes a bill."),
    ToolDocument("send_email", "Sends a message.", "to subject body"),
    ToolDocument("seikyusho", "請求書を取引先へ送ります。"),
    ToolDocument("fapiao", "给客户开发票。"),
    ToolDocument("nameless"),
]


async def found(query: str, limit: int = 8, documents: list[ToolDocument] | None = None) -> list[str]:
    index = BM25Retriever().index(DOCUMENTS if documents is None else documents)
    return [match.name for match in await index.search(query, limit)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("please create an invoice", "create_invoice"),
        ("get rid of this invoice, delete it", "delete_invoice"),
        ("which tool takes a subject?", "send_email"),
        ("請求書をお願いします", "seikyusho"),
        ("我要开发票", "fapiao"),
    ],
)
async def test_the_best_match_comes_first(query: str, first: str) -> None:
    assert (await found(query))[0] == first


async def test_a_tool_without_a_shared_word_is_not_found() -> None:
    assert await found("zebra") == []
    assert await found("") == []
    assert await found("invoice", 0) == []


async def test_equal_matches_keep_the_order_of_the_tools() -> None:
    same = [ToolDocument(f"peel_{number}", "Peels fruit.") for number in range(30)]
    assert await found("fruit", 20, same) == [document.name for document in same[:20]]
    assert await found("fruit", 50, same) == [document.name for document in same]


@pytest.mark.parametrize("documents", [[], [ToolDocument("a")], [ToolDocument("!?")]])
async def test_few_or_wordless_tools_can_be_indexed(documents: list[ToolDocument]) -> None:
    assert await found("anything", 8, documents) == []


@pytest.mark.parametrize("weight", [-1, 21, True, 1.5, "2"])
def test_a_weight_is_a_small_whole_number(weight: object) -> None:
    with pytest.raises(InvalidOptionError, match="name_weight: must be an int"):
        BM25Retriever(name_weight=weight)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(st.lists(st.text(max_size=40), max_size=6), st.text(max_size=60), st.integers(1, 8))
async def test_any_text_can_be_searched_and_results_are_ranked(
    texts: list[str], query: str, limit: int
) -> None:
    documents = [ToolDocument(f"tool{n}", text) for n, text in enumerate(texts)]
    index = BM25Retriever().index(documents)
    matches = await index.search(query, limit)  # type: ignore[misc]
    assert len(matches) <= limit
    assert [match.score for match in matches] == sorted((match.score for match in matches), reverse=True)
    assert len({match.name for match in matches}) == len(matches)


def test_a_document_contains_nested_parameters_and_handles_odd_schemas() -> None:
    from kantan_agents.tools.retrieval.retrievers.retriever import document_of

    made = tool(
        "pay",
        "Pays.",
        amount={"type": "number", "description": "How much"},
        to={"type": "object", "properties": {"iban": {"type": "string", "description": "Where"}}},
        odd=True,
    )
    document = document_of(made)
    assert document.parameters == "amount How much to iban Where odd"
    made.params_json_schema = {"properties": []}
    made.description = None  # type: ignore[assignment]
    assert document_of(made) == ToolDocument("pay")
