"""Decides whether text is read as a call, which must not give it more rights.

Rules and approvals apply as usual. But a model may quote a call that it would not make, so possible quotes
are not read, nor are models whose server parses calls.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Sequence
from functools import partial
from html import unescape
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import unquote

from agents import FunctionTool, Model, ModelSettings

from kantan_agents.core.items import NAMED_CALLS, get
from kantan_agents.models.call_ids import is_of_server
from kantan_agents.models.origin import Origins, origin_of
from kantan_agents.models.structured.requests.families import ANTHROPIC, DEEPSEEK, GOOGLE, OPENAI, family_of
from kantan_agents.models.text_forms import TextReader
from kantan_agents.support.log import get_logger

VARIABLE: Final = "KANTAN_AGENTS_TEXT_FORMS"
"""Text to read: ``all`` (default), ``reasoning``, or (other values) nothing."""

_READS_CALLS: Final = (OPENAI, GOOGLE, ANTHROPIC, DEEPSEEK)
_MARK: Final = "tool_call"  # without brackets, which a quote may spell differently
_ESCAPE: Final = re.compile(
    r"\\(?:u0000([0-9a-f]{4})|u([0-9a-f]{4})|u\{0*([0-9a-f]{1,5})\}|x([0-9a-f]{2}))", re.IGNORECASE
)
_IGNORED: Final = re.compile("[\\\\\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_LAYERS: Final = 4  # such as an entity in JSON in JSON
_MEDIA: Final = re.compile(r'"type": "(?:input_)?(?:image|file|audio)')
CALLERS = Origins()
"""The models with a tool call in the API's form."""
_log = get_logger("kantan_agents.models")


def reader_for(
    model: Model,
    instructions: str | None,
    items: Any,
    settings: ModelSettings,
    tools: Sequence[Any],
    _schema: Any,
    handoffs: Sequence[Any],
    *_: Any,
) -> TextReader:
    """Return a reader for a request's answer."""
    read = os.environ.get(VARIABLE) or "all"
    offered = partial(_callable_tools, model, instructions, items, settings, tools, handoffs)
    return TextReader(offered if read == "all" else tuple, reads_reasoning=read in ("all", "reasoning"))


def _callable_tools(
    model: Model,
    instructions: str | None,
    items: Any,
    settings: ModelSettings,
    tools: Sequence[Any],
    handoffs: Sequence[Any],
) -> Collection[str]:
    functions = [tool for tool in tools if isinstance(tool, FunctionTool)]
    names = {tool.name for tool in functions} | {handoff.tool_name for handoff in handoffs}
    choice = settings.tool_choice
    if choice == "none":
        return ()
    if choice not in (None, "auto", "required"):
        names &= {str(choice)}
    origin = origin_of(model)
    request = [instructions, items, [[tool.description, tool.params_json_schema] for tool in functions]]
    family = family_of(origin.provider, origin.base_url)
    if origin in CALLERS or family in _READS_CALLS or _has_calls(items):
        reason = "its server reads calls"
    elif contains := _quotable(json.dumps(request, default=str, ensure_ascii=False)):
        reason = f"the request contains {contains}, so that it may be a quote"
    else:
        return names
    if names:
        _log.warning("text that looks like a tool call is left as text", model=origin.model, reason=reason)
    return ()


def _quotable(request: str) -> str | None:
    """Return what a model may quote a call from, if anything."""
    if found := _MEDIA.search(request):
        kind = found[0].rpartition('"')[2].removeprefix("input_")
        return f"media ({kind}), which may show a call"
    text = request
    for _ in range(_LAYERS):
        if _MARK in _IGNORED.sub("", normalize("NFKC", text)).lower():
            return _MARK
        before, text = text, _ESCAPE.sub(_unescaped, unquote(unescape(text)))
        if text == before:
            break
    return None


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(next(filter(None, escape.groups())), 16))


def _has_calls(items: Any) -> bool:
    """Return whether the input has a real call."""
    return isinstance(items, list) and any(
        get(item, "type") in NAMED_CALLS and is_of_server(get(item, "call_id")) for item in items
    )
