"""The prompt caches of Anthropic and Gemini, computed from the requests as the APIs do."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.models.protocol.wire_server import Body

SMALLEST = 1024
LOOK_BACK = 20


def tokens(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False)) // 4


def error(status: int, message: str) -> Body:
    return Body(
        {"type": "error", "error": {"type": "invalid_request_error", "message": message}}, status=status
    )


class AnthropicCache:
    """Hashes the prefix of a request up to each block, and stores those that end at a breakpoint.

    A request reads the longest stored prefix among the 20 blocks before each of its breakpoints.
    """

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = list(answers)
        self.stored: set[str] = set()
        self.usages: list[dict[str, int]] = []

    def __call__(self, method: str, path: str, body: dict[str, Any]) -> Body:
        assert (method, path) == ("POST", "/v1/messages")
        hashes, sizes, breakpoints = [], [0], []
        digest = hashlib.sha256()
        for block in self._blocks(body):
            control = block.pop("cache_control", None)
            digest.update(json.dumps(block, sort_keys=True).encode())
            hashes.append(digest.hexdigest())
            sizes.append(sizes[-1] + tokens(block))
            if control is not None:
                if control not in ({"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}):
                    return error(400, f"unknown cache_control {control}")
                if block.get("type") == "thinking" or block.get("text") == "":
                    return error(400, "cache_control cannot be set for empty text blocks and thinking")
                breakpoints.append(len(hashes))
        if len(breakpoints) > 4:
            return error(400, "A maximum of 4 blocks with cache_control may be provided.")
        read = 0
        for place in breakpoints:
            for end in range(place, max(place - LOOK_BACK, 0), -1):
                if hashes[end - 1] in self.stored:
                    read = max(read, sizes[end])
                    break
        written = [place for place in breakpoints if sizes[place] >= SMALLEST]
        self.stored.update(hashes[place - 1] for place in written)
        cached = max([read, *(sizes[place] for place in written)])
        usage = {
            "input_tokens": sizes[-1] - cached,
            "cache_creation_input_tokens": cached - read,
            "cache_read_input_tokens": read,
            "output_tokens": 5,
        }
        self.usages.append(usage)
        return Body({"type": "message", "role": "assistant", **self.answers.pop(0), "usage": usage})

    @staticmethod
    def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for tool in body.get("tools", ()):
            yield dict(tool)
        for part in ({"role": "system", "content": body.get("system", [])}, *body["messages"]):
            content = part["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                yield {**block, "role": part["role"]}


class GeminiCache:
    """Stores cached contents, and refuses requests that repeat what they have cached."""

    def __init__(self, answers: list[dict[str, Any]], smallest: int = SMALLEST) -> None:
        self.answers = list(answers)
        self.smallest = smallest
        self.contents: dict[str, dict[str, Any]] = {}
        self.created = 0
        self.deleted: list[str] = []

    def __call__(self, method: str, path: str, body: dict[str, Any]) -> Body:
        if method == "DELETE":
            self.deleted.append(path.removeprefix("/v1beta/"))
            return Body({}) if self.contents.pop(self.deleted[-1], None) else error(404, "not found")
        if path == "/v1beta/cachedContents":
            return self._create(body)
        name = body.get("cachedContent")
        cached = 0
        if name is not None:
            if name not in self.contents:
                return error(403, "CachedContent not found (or permission denied)")
            if {"systemInstruction", "tools", "toolConfig"} & set(body):
                return error(400, "CachedContent can not be used with tools")
            cached = tokens(self.contents[name])
        usage = {
            "promptTokenCount": cached + tokens(body),
            "candidatesTokenCount": 5,
            "totalTokenCount": cached + tokens(body) + 5,
            **({"cachedContentTokenCount": cached} if cached else {}),
        }
        answer = {**self.answers.pop(0), "usageMetadata": usage}
        return Body(events=[answer]) if "stream" in path else Body(answer)

    def _create(self, body: dict[str, Any]) -> Body:
        assert body.pop("model").startswith("models/")
        assert body.pop("ttl").endswith("s")
        if tokens(body) < self.smallest:
            return error(400, f"Cached content is too small. min_total_token_count={self.smallest}")
        self.created += 1
        name = f"cachedContents/c{self.created}"
        self.contents[name] = body
        return Body({"name": name, "usageMetadata": {"totalTokenCount": tokens(body)}})
