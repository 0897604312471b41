"""Prompts of MCP servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from agents.items import TResponseInputItem
from agents.mcp import MCPServer

from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.errors import InvalidOptionError, MCPServerLoopError, PromptNotFetchedError
from kantan_agents.tools.mcp.offers import as_data, check_server, reason_of
from kantan_agents.tools.mcp.server_connections import ask_server

_VERSION_DIGITS = 12
_ASKER = "(none)"  # replaces the agent's name in errors about event loops


@attrs.frozen
class MCPPrompt:
    """A prompt as an MCP server has returned it. Nothing in it is rendered as a template.

    Attributes:
        server: Name of the server.
        name: Name of the prompt.
        items: Its messages as input items of the SDK: ``agent.run_async(prompt.items)``.
        description: The purpose of the prompt; "" if the server does not give it.
    """

    server: str
    name: str
    items: Sequence[TResponseInputItem]
    description: str = ""

    @property
    def text(self) -> str:
        """The text of its messages, separated by empty lines; images are omitted."""
        texts = (text for item in self.items for text in _texts(item))
        return "\n\n".join(texts)

    def as_instructions(self, version: str | None = None) -> Prompt:
        """Return the text as instructions for an agent, with the name and the version that traces record.

        Args:
            version: Version of the prompt; by default the start of the hash of its text, because servers give
                none.

        Raises:
            EmptyPromptTextError: E2, the prompt has no text.
        """
        text = self.text
        return Prompt(
            f"{self.server}/{self.name}",
            version or hash_text(text)[:_VERSION_DIGITS],
            text,
            meta={"mcp_server": self.server, "mcp_prompt": self.name},
            literal=True,
        )


async def mcp_prompt(server: MCPServer, name: str, arguments: Mapping[str, str] | None = None) -> MCPPrompt:
    """Fetch a prompt from an MCP server.

        prompt = await mcp_prompt(server, "review", {"file": "main.py"})
        context = await agent.run_async(prompt.items)

    Args:
        server: The server. It is connected if it is not, or if its connection is lost.
        name: Name of the prompt.
        arguments: Its arguments, all strings.

    Raises:
        PromptNotFetchedError: E39, the server does not know the prompt, rejects the arguments, answers
            without a message, or cannot be used.
        MCPServerLoopError: E37, its connection is on an event loop that cannot make progress.
        InvalidOptionError: E75, ``arguments`` is not a mapping of strings, or ``server`` is not an MCP
            server.
    """
    check_server(server)
    given = {} if arguments is None else arguments
    if not isinstance(given, Mapping) or not all(
        isinstance(text, str) for pair in given.items() for text in pair
    ):
        reason = f"must map names to texts, not {arguments!r:.200}"
        raise InvalidOptionError(option="arguments", reason=reason)
    try:
        fetched = await ask_server(server, lambda: server.get_prompt(name, dict(given) or None), _ASKER)
        answer = as_data(fetched)
    except MCPServerLoopError:
        raise
    except Exception as error:
        raise PromptNotFetchedError(prompt=name, server=server.name, reason=reason_of(error)) from error
    items = [_item(message) for message in answer.get("messages", [])]
    if not items:
        raise PromptNotFetchedError(prompt=name, server=server.name, reason="it has no messages")
    return MCPPrompt(server.name, name, items, str(answer.get("description", "")))


def _item(message: Mapping[str, Any]) -> TResponseInputItem:
    content = message.get("content", {})
    part = _part(content if isinstance(content, dict) else {})
    if message.get("role") == "assistant":
        return {"role": "assistant", "content": part.get("text", "[image]")}
    return {"role": "user", "content": part["text"] if part["type"] == "input_text" else [part]}


def _part(content: Mapping[str, Any]) -> Any:
    kind, resource = content.get("type"), content.get("resource", {})
    if kind == "text":
        return _text(str(content.get("text", "")))
    if kind == "resource" and isinstance(resource.get("text"), str):
        return _text(resource["text"])
    data, mime = (
        (content.get("data"), content.get("mimeType"))
        if kind == "image"
        else (resource.get("blob"), resource.get("mimeType"))
    )
    if isinstance(data, str) and str(mime).startswith("image/"):
        return {"type": "input_image", "detail": "auto", "image_url": f"data:{mime};base64,{data}"}
    words = [
        kind,
        resource.get("uri") or content.get("uri"),
        content.get("name"),
        mime or content.get("mimeType"),
    ]
    return _text(f"[{' '.join(str(word) for word in words if word)}]")


def _text(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


def _texts(item: Any) -> Sequence[str]:
    return [item["content"]] if isinstance(item["content"], str) else []
