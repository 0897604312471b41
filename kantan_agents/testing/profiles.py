"""Profiles of providers.

A profile rejects the requests that the provider rejects, and formats structured answers as its models do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import attrs

from kantan_agents.testing.replies import Reply, ReplyLike, ScriptedToolCall

Body = Mapping[str, Any]
_FINAL = "final_answer"


def _format_type(body: Body) -> str | None:
    requested = body.get("response_format") or (body.get("text") or {}).get("format") or {}
    return requested.get("type") if isinstance(requested, dict) else None


def _schema(body: Body) -> tuple[Mapping[str, Any], bool]:
    chat = (body.get("response_format") or {}).get("json_schema")
    requested = chat or (body.get("text") or {}).get("format") or {}
    return requested.get("schema") or {}, bool(requested.get("strict"))


def _final_tool(body: Body) -> str | None:
    names = [(tool.get("function") or tool).get("name") for tool in body.get("tools") or ()]
    return next((name for name in names if isinstance(name, str) and name.startswith(_FINAL)), None)


@attrs.frozen
class Profile:
    """How a kind of provider handles requests for structured output.

    Attributes:
        name: The name of the profile.
        api: The API it serves, for ``OfflineServer.bundle``.
        provider: kantan-llm's name for such a provider.
        refuses: Returns the error reply to a request that the provider rejects, else None.
        enforces_schema: Whether replies follow a JSON schema in the request.
        calls_tools: Whether its models call the final tool if the request has one.
        chat: Formats JSON that no schema enforces as its models do, such as in prose or a code fence.
        beside_tool: The text that its models add to the call of the final tool.
        usage: When its server reports the tokens of a reply: ``"asked"`` as OpenAI, where a streamed chat
            completion reports them only if the request asks for it; ``"never"`` in no reply.
    """

    name: str
    api: str = "chat"
    provider: str = "compat"
    refuses: Callable[[Body], Reply | None] = attrs.field(default=lambda _body: None, repr=False)
    enforces_schema: bool = True
    calls_tools: bool = True
    chat: Callable[[str], str] = attrs.field(default=str, repr=False)
    beside_tool: str | None = None
    usage: Literal["asked", "never"] = "asked"

    def reply(self, body: Body, scripted: ReplyLike) -> Reply:
        """Return the provider's reply to a request that it accepts, made from the scripted one."""
        reply = Reply.of(scripted)
        if reply.data is None:
            return reply
        final = _final_tool(body)
        text = json.dumps(reply.data, ensure_ascii=False)
        if final is not None and self.calls_tools:
            return attrs.evolve(reply, text=self.beside_tool, tool_calls=(ScriptedToolCall(final, text),))
        requested = _format_type(body)
        enforced = requested == "json_object" or (requested == "json_schema" and self.enforces_schema)
        return attrs.evolve(reply, text=text if enforced else self.chat(text))


def _refusal(status: int, message: str, **details: Any) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None, **details}
    return Reply(status=status, body=json.dumps({"error": error}).encode())


def _openai(body: Body) -> Reply | None:
    refused = _wrong_id(body) or _wrong_name(body)
    schema, strict = _schema(body)
    if refused is not None or _format_type(body) != "json_schema" or not strict:
        return refused
    for path, problem in _against_strict(schema, ()):
        place = "(" + ", ".join(map(repr, path)) + ")"
        message = f"Invalid schema for response_format 'final_output': In context={place}, {problem}"
        return _refusal(400, message, param="text.format.schema", code="invalid_json_schema")
    return None


_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


def _wrong_id(body: Body) -> Reply | None:
    items = body.get("input")
    for place, item in enumerate(items if isinstance(items, list) else ()):
        prefix, given = _PREFIXES.get(item.get("type", "")), item.get("id")
        if prefix is not None and given is not None and not str(given).startswith(prefix):
            name = f"input[{place}].id"
            message = f"Invalid '{name}': '{given}'. Expected an ID that begins with '{prefix}'."
            return _refusal(400, message, param=name, code="invalid_value")
    return None


_NAME = r"^[a-zA-Z0-9_-]+$"
_LONGEST_NAME = 64


def _wrong_name(body: Body) -> Reply | None:
    for place, given in _names_of_tools(body):
        problem = None
        if re.match(_NAME, given) is None:
            problem = f"string does not match pattern. Expected a string that matches the pattern '{_NAME}'."
        elif len(given) > _LONGEST_NAME:
            problem = (
                f"string too long. Expected a string with maximum length {_LONGEST_NAME}, "
                f"but got a string with length {len(given)} instead."
            )
        if problem is not None:
            return _refusal(400, f"Invalid '{place}': {problem}", param=place, code="invalid_value")
    return None


def _names_of_tools(body: Body) -> Iterator[tuple[str, str]]:
    found: list[tuple[str, Any]] = []
    for number, tool in enumerate(body.get("tools") or ()):
        inner = "function" in tool and isinstance(tool["function"], Mapping)
        place = f"tools[{number}].function.name" if inner else f"tools[{number}].name"
        found.append((place, (tool["function"] if inner else tool).get("name")))
    items = body.get("input")
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if item.get("type") == "function_call":
            found.append((f"input[{number}].name", item.get("name")))
    for number, message in enumerate(body.get("messages") or ()):
        for position, call in enumerate(message.get("tool_calls") or ()):
            name = (call.get("function") or {}).get("name")
            found.append((f"messages[{number}].tool_calls[{position}].function.name", name))
    return ((place, name) for place, name in found if isinstance(name, str))


_NOT_PERMITTED = ("default", "oneOf", "allOf", "not", "if", "minLength", "maxLength", "uniqueItems")


def _against_strict(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield violations of OpenAI's strict form."""
    if not isinstance(schema, Mapping):
        return
    for keyword in _NOT_PERMITTED:
        if keyword in schema:
            yield path, f"'{keyword}' is not permitted."
    properties = schema.get("properties") or {}
    if schema.get("type") == "object" or properties:
        if schema.get("additionalProperties") is not False:
            yield path, "'additionalProperties' is required to be supplied and to be false."
        missing = [name for name in properties if name not in (schema.get("required") or ())]
        if missing:
            rule = (
                "'required' is required to be supplied and to be an array including every key in properties."
            )
            yield path, f"{rule} Missing {missing[0]!r}."
    for name, inner in properties.items():
        yield from _against_strict(inner, (*path, "properties", name))
    for name, inner in (schema.get("$defs") or {}).items():
        yield from _against_strict(inner, (*path, "$defs", name))
    yield from _against_strict(schema.get("items"), (*path, "items"))
    for number, inner in enumerate(schema.get("anyOf") or ()):
        yield from _against_strict(inner, (*path, "anyOf", str(number)))


def _google(body: Body) -> Reply | None:
    if not body.get("tools") or _format_type(body) not in ("json_schema", "json_object"):
        return None
    message = "Function calling with a response mime type: 'application/json' is unsupported"
    # This API wraps the error in a list.
    error = [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]
    return Reply(status=400, body=json.dumps(error).encode())


def _deepseek(body: Body) -> Reply | None:
    if _format_type(body) == "json_schema":
        return _refusal(400, "This response_format type is unavailable now")
    if body.get("tool_choice") == "required" and "reasoner" in str(body.get("model")):
        return _refusal(400, "deepseek-reasoner does not support this tool_choice")
    return None


def _toolless(body: Body) -> Reply | None:
    if body.get("tools"):
        message = f"registry.ollama.ai/library/{body.get('model')} does not support tools"
        return _refusal(400, message, type="api_error")
    return None


def _plain(body: Body) -> Reply | None:
    if _format_type(body) not in (None, "text"):
        return _refusal(400, "Unrecognized request argument supplied: response_format")
    for name in ("tools", "stream_options"):
        if body.get(name):
            return _refusal(400, f"Unrecognized request argument supplied: {name}")
    return None


def _fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def _chatty(text: str) -> str:
    return f"Sure! Here is the answer:\n\n{_fenced(text)}\n\nLet me know if you need anything else."


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("openai", api="responses", provider="openai", refuses=_openai),
        Profile("google", provider="google", refuses=_google, chat=_fenced),
        Profile(
            "anthropic",
            provider="anthropic",
            enforces_schema=False,
            chat=_chatty,
            beside_tool="I'll give the final answer now.",
        ),
        Profile("deepseek", provider="deepseek", refuses=_deepseek, chat=_fenced),
        Profile("ollama", provider="ollama", refuses=_toolless, chat=_fenced),
        Profile("ignoring", enforces_schema=False, calls_tools=False, chat=_chatty),
        Profile("plain", refuses=_plain, enforces_schema=False, calls_tools=False, chat=_chatty),
    )
}
"""The profiles by name: ``OfflineServer([{"city": "Paris"}], profile="deepseek")``."""


def profile_named(profile: str | Profile | None) -> Profile | None:
    """ValueError if unknown."""
    if profile is None or isinstance(profile, Profile):
        return profile
    try:
        return PROFILES[profile]
    except KeyError:
        known = ", ".join(PROFILES)
        raise ValueError(f"there is no profile {profile!r}; there are {known}") from None
