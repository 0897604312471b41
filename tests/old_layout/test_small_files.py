"""A paused run, caches and a conversation of the older layout."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import httpx
import openai
import pytest

from kantan_agents.middleware import Approved, Cache, resume
from kantan_agents.testing import OfflineServer
from kantan_agents.tools.retrieval import EmbeddingRetriever
from tests.old_layout import shop
from tests.old_layout.conftest import DATA, Copied
from tests.programs import Preloaded


def test_a_paused_run_is_resumed(server: OfflineServer) -> None:
    stored = (DATA / "paused.txt").read_text(encoding="utf-8")
    agent = shop.payer(server)
    context = asyncio.run(resume(agent, stored, {"r1": Approved({"order_id": "8"})}, key=shop.KEY))
    assert context["result"].final_output == "Done."
    (request,) = server.requests
    assert request.input[-1]["output"] == "order 8 is paid back"


def test_a_cached_answer_of_before_is_not_given_because_it_does_not_say_to_whom(copied: Copied) -> None:
    asked: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(400, json={"error": {"message": "not now"}})

    cache = Cache(copied("answers.db"), ttl=shop.CENTURY, per=None)
    agent = shop.thrifty(shop.distant_model(httpx.MockTransport(refuse)), cache)
    with pytest.raises(openai.BadRequestError, match="not now"):
        asyncio.run(agent.run_async("Is it late?"))
    assert (len(asked), cache.stats().hits) == (1, 0)


def test_vectors_of_tools_are_not_computed_again(copied: Copied, server: OfflineServer) -> None:
    embedding = shop.Embedding()
    retriever = EmbeddingRetriever(embedding, cache=copied("vectors.db"), model_name="shop-embedding")
    shop.finder(server, retriever).run("What is the status?")
    assert embedding.asked == ["What is the status?"]
    names = [tool["name"] for tool in server.requests[0].body["tools"]]
    assert "order_status" in names
    assert "refund" not in names


CHAT = """
import sys
from kantan_agents.cli.app import main
sys.stdin = open("questions")
sys.argv = ["kantan-agents", "chat", "--agent", "chat_shop:agent", "--resume", "last"]
main()
"""


def test_a_conversation_goes_on(
    copied: Copied, tmp_path: Path, server: OfflineServer, preloaded: Preloaded
) -> None:
    agent = "from kantan_agents import Agent\nagent = Agent('greeter', 'Answer.', model='gpt-6.1-terra')\n"
    (tmp_path / "chat_shop.py").write_text(agent)
    (tmp_path / "questions").write_text("And then?\n")
    environ = {
        **os.environ,
        **server.environment(),
        "KANTAN_AGENTS_CONVERSATIONS": str(copied("conversations.db")),
        "KANTAN_AGENTS_DB": str(tmp_path / "chat.db"),
    }
    ended = preloaded.run(["-c", CHAT], env=environ, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "Found.\n"), ended.stderr
    assert "2 turns, the last:\n> And now?\nFound.\n" in ended.stderr
    (request,) = server.requests
    asked = [item["content"] for item in request.body["input"] if item.get("role") == "user"]
    assert asked == ["Hello, who is there?", "And now?", "And then?"]
