"""Classifies a provider's error: about the form of a request, other, or unclear.

A request that carries less (``bareness``) decides unclear cases; see
``kantan_agents.agent.bridge.structured_requests``.
"""

from __future__ import annotations

import re
from typing import Any, Literal, TypeAlias

from openai import APIStatusError

from kantan_agents.errors import ProviderRequestError, UntranslatableError
from kantan_agents.models.structured.requests.forms import (
    EXAMPLE,
    FORCED_TOOL,
    JSON_OBJECT,
    JSON_OBJECT_OF_SCHEMA,
    NATIVE,
    PROMPT,
    TOOL,
    Form,
)

RefusalError: TypeAlias = APIStatusError | UntranslatableError | ProviderRequestError
REFUSALS = (APIStatusError, UntranslatableError, ProviderRequestError)
"""Errors that may reject the form of a request."""

Cause = Literal["form", "unclear", "other"]

_BAD_REQUEST = frozenset({400, 404, 422})
# Some local servers fail to build a grammar. Other server errors are outages.
_SERVER_ERROR = frozenset({500, 501})

# A schema may be "too large" too, so these words name the conversation.
_SIZE = re.compile(
    r"context.{0,20}(length|window|size|limit)|(prompt|input|message|conversation|request)s? (is|are) too l"
    r"|token (count|limit)|too many (input |prompt )?tokens|maximum .{0,40}tokens"
    r"|exceed.{0,60}tokens|tokens.{0,40}exceed|reduce the length",
    re.IGNORECASE,
)
_SCHEMA = re.compile(
    r"response_?format|output_?(config|format)|text\.format|json[ _]?(schema|mode|object|output)"
    r"|response mime|response_?(json_?)?schema|structured[ _]?output|formatted output|grammar|guided"
    r"|\bschemas?\b(?! for function)|\bstrict\b|word .?json"
    r"|requested parameters|no endpoints found that support",
    re.IGNORECASE,
)
_TOOL = re.compile(r"tool|function|final_answer", re.IGNORECASE)
_CHOICE = re.compile(r"choice|required", re.IGNORECASE)
_OTHER = re.compile(
    r"quota|credit|billing|balance|payment|api[ _-]?key|authenticat|unauthori[sz]ed|permission|forbidden"
    r"|model.{0,100}(not found|not exist|unknown)|(unknown|invalid|no such) model|model_not_found"
    r"|content[ _](policy|filter|management)|safety|flagged|moderation|location",
    re.IGNORECASE,
)
_CONVERSATION = ("messages", "input[")
_BARENESS = {
    NATIVE: 0,
    FORCED_TOOL: 1,
    TOOL: 2,
    JSON_OBJECT_OF_SCHEMA: 3,
    JSON_OBJECT: 4,
    EXAMPLE: 5,
    PROMPT: 6,
}


def bareness(form: Form) -> int:
    """Return how little a form adds to a request."""
    return _BARENESS[form]


def cause_of(error: RefusalError, form: Form) -> Cause:
    """Return whether an error is about the form, other, or unclear."""
    if isinstance(error, UntranslatableError):
        # Every form has the same conversation.
        return "other" if any(one.startswith(_CONVERSATION) for one in error.problems) else "form"
    status = error.status_code if isinstance(error, APIStatusError) else error.status
    if status not in _BAD_REQUEST and status not in _SERVER_ERROR:
        return "other"
    text = message_and_details(error)
    if _SIZE.search(text):
        # A provider may count a schema's tokens, too.
        return "unclear" if _SCHEMA.search(text) else "other"
    if _SCHEMA.search(text) or (form.mode == "tool" and _TOOL.search(text)):
        return "form"
    return "other" if status in _SERVER_ERROR or _OTHER.search(text) else "unclear"


def is_about_choice(error: RefusalError) -> bool:
    """Return whether only forced calls were rejected."""
    return _CHOICE.search(message_of(error)) is not None


def message_of(error: RefusalError) -> str:
    """Return the provider's own message."""
    if not isinstance(error, APIStatusError):
        return error.reason if isinstance(error, ProviderRequestError) else str(error)
    inner = _inner(error)
    message = inner.get("message") if isinstance(inner, dict) else inner
    return message if isinstance(message, str) and message else error.message


def message_and_details(error: RefusalError) -> str:
    """Return the message with a gateway's details."""
    return f"{message_of(error)} {_details(error)}"


def described(error: RefusalError, longest: int = 500) -> str:
    """Return an error for a list of attempts."""
    message = message_of(error)[:longest]
    return f"HTTP {error.status_code}: {message}" if isinstance(error, APIStatusError) else message


def _inner(error: APIStatusError) -> Any:
    body = error.body[0] if isinstance(error.body, list) and error.body else error.body
    return body.get("error", body) if isinstance(body, dict) else body


def _details(error: RefusalError) -> str:
    inner = _inner(error) if isinstance(error, APIStatusError) else None
    if not isinstance(inner, dict):
        return ""
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return " ".join(str(one) for one in (inner.get("param"), inner.get("code"), raw) if one is not None)
