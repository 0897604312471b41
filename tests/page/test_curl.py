"""A model call as a command: run by a real shell, it sends what the run has sent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest
from agents import ModelSettings
from pydantic import BaseModel
from starlette.testclient import TestClient

from kantan_agents import Agent, Prompt, TraceStore, record_traces
from kantan_agents.page import traces_app
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall

HOSTILE = """'; touch hit; echo "$(touch hit)" `touch hit` \\ \n東京 😀"""

needs_curl = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("bash")), reason="there is no curl"
)


class Order(BaseModel):
    """A structured output."""

    number: int


def look_up(text: str) -> str:
    """Look up."""
    return text


def body_of(request: Any) -> dict[str, Any]:
    return dict(request.body)


@needs_curl
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_the_command_sends_the_request_again(tmp_path: Path, api: Literal["responses", "chat"]) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder = record_traces(path)
    replies = [ScriptedToolCall("look_up", {"text": HOSTILE}), {"number": 7}]
    with OfflineServer([*replies, "again", "again"]) as server:
        billing = Agent("billing", "Bill.", model=server.bundle(api=api))
        agent = Agent(
            "a",
            Prompt("p", "v1", HOSTILE),
            model=server.bundle(api=api),
            tools=[look_up],
            handoffs=[billing],
            output_type=Order,
            output_dest="order",
            model_settings=ModelSettings(temperature=0.5),
        )
        agent.run(HOSTILE)
        recorder.shutdown()
        sent = [body_of(request) for request in server.requests]
        with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
            commands = [client.get(f"/api/run/LAST/call/{number}/curl").json()["text"] for number in (0, 1)]
        for command in commands:
            environment = {**os.environ, "OPENAI_API_KEY": "k", "API_KEY": "k", "NO_PROXY": "127.0.0.1"}
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                check=False,
                timeout=60,
            )
            assert done.returncode == 0
        again = [body_of(request) for request in server.requests[2:]]
    assert again == sent
    assert not (tmp_path / "hit").exists()
    assert all("offline" not in command.replace("offline-model", "") for command in commands)  # the key


def test_what_has_no_command_says_why(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder = record_traces(path)
    Agent("a", "Answer.", model=ScriptedModel(["hello"])).run("hi")
    recorder.shutdown()
    assert len(TraceStore(path).trace("LAST").model_calls) == 1
    with TestClient(traces_app(path), base_url="http://127.0.0.1") as client:
        other = client.get("/api/run/LAST/call/0/curl")
        assert other.status_code == 400 and "an API that is not OpenAI's" in json.dumps(other.json())
        missing = client.get("/api/run/LAST/call/1/curl")
        assert missing.status_code == 400 and "must be below 1" in missing.json()["error"]["message"]
        assert client.get("/api/run/LAST/call/x/curl").status_code == 404
