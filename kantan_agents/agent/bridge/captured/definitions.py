"""Describes agents, tools, handoffs and settings as JSON data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from agents import FunctionTool, Handoff, HostedMCPTool

from kantan_agents.tools.facts import label_of
from kantan_agents.tools.server_names import bound_to, server_of
from kantan_agents.traces.capture.encoding import encoder

GENERATED_CACHE_KEY: Final = "agents-sdk:"
"""Prefix of the SDK's generated ``prompt_cache_key``, which carries no information."""

# Other kinds of tools have these fields for local use; they are not sent.
_NOT_SENT = frozenset(
    {
        "computer",
        "custom_data_extractor",
        "editor",
        "executor",
        "initializer",
        "lifecycle",
        "needs_approval",
        "on_approval",
        "on_approval_request",
        "on_invoke_tool",
        "on_safety_check",
    }
)

# The prompt, tools and settings are recorded with each call; other options do not shape requests.
_OPTION_NAMES: Final = ("handoffs", "mcp_servers", "middleware")
_PLAIN_OPTIONS: Final = (
    "allow_env",
    "history",
    "output_dest",
    "output_mode",
    "output_repairs",
    "strict",
    "tool_use_behavior",
    "reset_tool_choice",
)
_known_options: WeakKeyDictionary[Any, tuple[list[Any], msgspec.Raw]] = WeakKeyDictionary()


def jsonable(value: Any) -> Any:
    """Convert a value to one that JSON has; TypeError if there is none."""
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json", exclude_unset=True, warnings=False)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "__attrs_attrs__") and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in value.__attrs_attrs__}
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    raise TypeError(type(value).__name__)


encode = encoder(jsonable)


def settings_data(settings: Any) -> dict[str, Any]:
    """Return the settings that are set, without retries."""
    return {name: value for name, value in vars(settings).items() if value is not None and name != "retry"}


def tool_data(tool: Any) -> dict[str, Any]:
    """Return the definition of a tool, without defaults."""
    if not isinstance(tool, FunctionTool):
        return _other_tool(tool)
    data: dict[str, Any] = {
        "kind": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
        "is_strict": tool.strict_json_schema,
    }
    fields = vars(tool)
    if fields.get("_tool_origin") is not None:
        server = server_of(tool)
        if server is not None:
            data["server"] = server
            data["name_on_server"] = getattr(bound_to(tool)[1], "name", None) or tool.name
    options = {name: fields.get(field) for name, field in _SENT if fields.get(field)}
    if options:
        data["options"] = options
    return data


_SENT = (
    ("defer_loading", "defer_loading"),
    ("allowed_callers", "allowed_callers"),
    ("output_json_schema", "output_json_schema"),
    ("namespace", "_tool_namespace"),
    ("namespace_description", "_tool_namespace_description"),
)


def _other_tool(tool: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": _kind_of(tool), "name": str(tool.name)}
    fields = vars(tool) if hasattr(tool, "__dict__") else {}
    options = {
        name: value
        for name, value in fields.items()
        if not name.startswith("_")
        and name not in _NOT_SENT
        and name not in ("name", "description")
        and value is not None
        and not callable(value)
    }
    if isinstance(fields.get("description"), str):
        data["description"] = fields["description"]
    if isinstance(tool, HostedMCPTool):
        data["server"] = label_of(tool)
    if options:
        data["options"] = options
    return data


def _kind_of(tool: Any) -> str:
    # Tool names are free, so the class identifies the kind.
    name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in type(tool).__name__)
    return name.strip("_").removesuffix("_tool").replace("m_c_p", "mcp")


def handoff_data(handoff: Handoff[Any, Any]) -> dict[str, Any]:
    """Return a handoff as the model's tool."""
    return {
        "kind": "handoff",
        "name": handoff.tool_name,
        "description": handoff.tool_description,
        "parameters": handoff.input_json_schema,
        "is_strict": handoff.strict_json_schema,
        "options": {"agent": handoff.agent_name},
    }


def output_data(schema: Any, mode: str) -> dict[str, Any]:
    """Return the structured output that a request demands."""
    return {
        "name": schema.name(),
        "schema": schema.json_schema(),
        "mode": mode,
        "is_strict": bool(schema.is_strict_json_schema()),
    }


def recorded_options(agent: Any) -> msgspec.Raw:
    """Return the Agent's options that shape requests, as JSON; cached until its handoffs change."""
    known, handoffs = _known_options.get(agent), agent.handoffs
    # By identity: `==` of the SDK's agents never ends on a cycle.
    if known is None or [*map(id, known[0])] != [*map(id, handoffs)]:
        given = {**agent.given.by_name(), "handoffs": handoffs}
        known = list(handoffs), msgspec.Raw(encode(_options_data(given)))
        _known_options[agent] = known
    return known[1]


def _options_data(given: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {
        name: given[name] for name in _PLAIN_OPTIONS if isinstance(given.get(name), (str, int, bool))
    }
    data |= {name: [_name_of(one) for one in given[name]] for name in _OPTION_NAMES if given.get(name)}
    for name in ("model", "output_type"):
        value = given.get(name)
        if value is not None:
            data[name] = value if isinstance(value, str) else getattr(value, "__name__", type(value).__name__)
    if given.get("tool_retrieval") is not None:
        data["tool_retrieval"] = repr(given["tool_retrieval"])
    return data


def _name_of(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], str):
        return value[0]  # a stage with a name
    name = getattr(value, "name", None) or getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__
