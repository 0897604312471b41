"""A real language model behind llama.cpp's HTTP server, and a proxy that makes it call tools."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
from agents import Usage
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from typing_extensions import Self

from kantan_agents.testing import RecordedRequest, Reply, ScriptedToolCall
from tests.ports import reserved_port

NAME = "smollm2"
PATIENCE = 120.0
ENOUGH_TOKENS = 300
"""For JSON of which all texts and lists are short, with white space."""


class ModelServer:
    """The server in a process of its own, with one thread; use it in a ``with`` statement.

    Attributes:
        url: Its address, for an OpenAI client.
    """

    def __init__(self) -> None:
        self._port = reserved_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Start it, and wait until it can be asked."""
        script = Path(__file__).with_name("serve_model.py")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, script, str(self._port)], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "the server has ended"

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.communicate()

    def bundle(self) -> AsyncClientBundle:
        """Return a client of it, for ``Agent(model=...)``."""
        direct = DefaultAsyncHttpxClient(trust_env=False)
        client = AsyncOpenAI(api_key="none", base_url=self.url, http_client=direct)
        return AsyncClientBundle(client, NAME, "compat", self.url)

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which ``compat/smollm2`` is this model."""
        return {"KANTAN_LLM_BASE_URL": self.url, "KANTAN_LLM_API_KEY": "none", "NO_PROXY": "127.0.0.1"}

    def wait_until_it_writes(self) -> None:
        """Wait until an answer is being written."""
        self._wait(0.02, is_writing=True)

    def wait_until_it_is_idle(self) -> None:
        """Wait until no answer is being written.

        The server looks for closed connections when nothing has happened for a second, and a question about
        its slots is something that happens.
        """
        self._wait(1.5, is_writing=False)

    def _wait(self, pause: float, *, is_writing: bool) -> None:
        end = time.monotonic() + PATIENCE
        while any(slot["is_processing"] for slot in self._slots()) != is_writing:
            assert time.monotonic() < end, f"waited in vain for {is_writing=}"
            time.sleep(pause)

    @property
    def last_answer_was_interrupted(self) -> bool:
        """Whether more tokens were to come when the server left off writing its last answer."""
        last = max(self._slots(), key=lambda slot: slot.get("id_task", -1))
        return bool(last["next_token"][0]["has_next_token"])

    def _slots(self) -> list[dict[str, Any]]:
        address = f"http://127.0.0.1:{self._port}/slots"
        found: list[dict[str, Any]] = httpx.get(address, trust_env=False, timeout=PATIENCE).json()
        return found

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def calling_tools(
    server: ModelServer, schema: Mapping[str, Any] | None = None
) -> Callable[[RecordedRequest], Awaitable[Reply]]:
    """Return the function of an ``OfflineServer`` that passes requests on, and makes the model call a tool.

    A model of this size calls no tool by itself. A grammar leaves it nothing else: each answer is a call,
    until the results are there. Which tool and what arguments is the model's choice.

    Args:
        server: The server of the model.
        schema: A JSON schema that texts must fit, as if the model followed an instruction.
    """

    async def reply(request: RecordedRequest) -> Reply:
        body = {**request.body, "messages": [_plain(message) for message in request.body["messages"]]}
        tools = [tool["function"] for tool in body.pop("tools", ())]
        is_forced = body.pop("tool_choice", None) == "required"
        calls = bool(tools) and (is_forced or request.input[-1]["role"] != "tool")
        wanted = (body.pop("response_format", None) or {}).get("json_schema", {}).get("schema", schema)
        if calls:
            wanted = {"anyOf": [_call_schema(tool) for tool in tools]}
        if wanted is not None:
            json_schema = {"schema": _bounded(wanted)}
            body |= {"response_format": {"type": "json_schema", "json_schema": json_schema}}
            body["max_tokens"] = ENOUGH_TOKENS
        for name in ("stream", "stream_options", "parallel_tool_calls"):
            body.pop(name, None)
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            answer = await client.post(f"{server.url}/chat/completions", json=body)
        return _reply(answer, is_call=calls)

    return reply


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without calls, which the model's template does not know."""
    role = "user" if message["role"] == "tool" else message["role"]
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return {"role": role, "content": json.dumps(calls) if calls else message["content"]}


def _call_schema(tool: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"tool": {"const": tool["name"]}, "arguments": tool["parameters"]}
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _bounded(schema: Any) -> Any:
    """Return a schema whose texts and lists end: a small model would repeat itself until it is cut."""
    if isinstance(schema, list):
        return [_bounded(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    limit = {"string": {"maxLength": 30}, "array": {"maxItems": 2}}.get(str(schema.get("type")), {})
    return {**{key: _bounded(value) for key, value in schema.items()}, **limit}


def _reply(answer: httpx.Response, *, is_call: bool) -> Reply:
    if answer.is_error:
        return Reply(answer.text, status=answer.status_code)
    body = answer.json()
    (choice,), used = body["choices"], body["usage"]
    usage = Usage(
        requests=1,
        input_tokens=used["prompt_tokens"],
        output_tokens=used["completion_tokens"],
        total_tokens=used["total_tokens"],
    )
    text = choice["message"]["content"]
    if not is_call:
        return Reply(text, is_cut=choice["finish_reason"] == "length", usage=usage)
    call = json.loads(text)
    return Reply(tool_calls=[ScriptedToolCall(call["tool"], call["arguments"])], usage=usage)
