"""Terms of identifiers, English, Japanese, Chinese, and arbitrary text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.tools.retrieval.retrievers.tokens import query_terms, terms_of


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("createSalesInvoice", ["creat", "sale", "invoic"]),
        ("create_sales_invoice", ["creat", "sale", "invoic"]),
        ("getHTTPResponse2", ["get", "http", "respons", "2"]),
        ("the customer's invoices", ["custom", "invoic"]),
        ("\uff29\uff2e\uff36\uff2f\uff29\uff23\uff25", ["invoic"]),
        ("", []),
        ("!?* \n", []),
        ("请求书", ["请", "求", "书", "请求", "求书"]),
        ("請求書を送る", ["請", "求", "書", "送", "請求", "求書", "書を", "を送", "送る"]),
        ("タクシーを呼んで", ["タクシー", "呼", "タク", "クシ", "シー", "ーを", "を呼", "呼ん"]),
        ("ﾀｸｼｰ", ["タクシー", "タク", "クシ", "シー"]),
        ("Überweisung", ["überweisung"]),
        ("v2beta", ["v", "2", "beta"]),
        ("Version2", ["version", "2"]),
    ],
)
def test_a_text_becomes_terms(text: str, terms: list[str]) -> None:
    assert terms_of(text) == terms


def test_a_request_also_gets_synonyms() -> None:
    terms = dict(query_terms("get rid of: remove the repo"))
    assert terms["repositori"] and terms["repo"] and terms["remov"]  # its own
    assert terms["delet"] is False  # what it may mean
    assert "get" not in terms or terms["get"] is False


@given(st.text(max_size=300))
def test_any_text_can_be_split_into_terms(text: str) -> None:
    terms = terms_of(text)
    assert all(terms)
    own = [term for term, is_own in query_terms(text) if is_own]
    assert len(own) == len(set(own))


@given(st.lists(st.sampled_from(["invoice", "order_list", "請求書", "发票", "タクシー", "x9"]), max_size=8))
def test_words_separated_by_spaces_do_not_affect_each_other(words: list[str]) -> None:
    assert terms_of(" ".join(words)) == [term for word in words for term in terms_of(word)]
