"""Remarks on settings that have another effect here, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.frontmatter.keys import KEY_OF, folded, looks_like
from kantan_agents.subagent_files.grants import grants_of
from kantan_agents.subagent_files.names import LONG_CONTEXT, MODEL_REMARKS
from kantan_agents.tool_rules.full_shells import remark_on_entry


@attrs.frozen
class Remark:
    """A remark on one key of a file; ``message`` starts with the key."""

    key: str
    message: str


def remarks_of(definition: AgentDefinition) -> tuple[Remark, ...]:
    """Return remarks on the tools, the model, and unused limits."""
    return (
        *(Remark(text.partition(":")[0], text) for text in grants_of(definition).remarks),
        *_full_shells(definition),
        *_model_remarks(definition.model),
        *_unused_keys(definition),
    )


def _full_shells(definition: AgentDefinition) -> Iterator[Remark]:
    for entry in definition.tools if isinstance(definition.tools, tuple) else ():
        remark = remark_on_entry(entry)
        if remark is not None:
            yield Remark("tools", f"tools: {remark}")


def _model_remarks(model: str | None) -> Iterator[Remark]:
    name = (model or "").strip()
    short = LONG_CONTEXT.sub("", name)
    if short != name:
        message = f"model: {name} is read as {short}; the larger context is not requested"
        yield Remark("model", message)
    remark = MODEL_REMARKS.get(short.casefold())
    if remark is not None:
        yield Remark("model", f"model: {remark}")


@attrs.frozen
class _Limit:
    program: str
    instead: str
    limits: Callable[[Any], bool]


def _is_set(value: Any) -> bool:
    return value not in (None, False, "", {}, []) and str(value).lower() not in ("false", "no", "off")


def _is_given(value: Any) -> bool:
    return value is not None


def _is_off(value: Any) -> bool:
    return value is False or str(value).lower() in ("false", "no", "off")


_LISTS: Final = "use tools and disallowedTools"
_LIMITS: Final[Mapping[str, _Limit]] = {
    folded(key): limit
    for keys, limit in {
        ("permissionMode",): _Limit(
            "Claude Code",
            f"{_LISTS}, or the middleware Approve",
            lambda mode: _is_set(mode) and mode != "bypassPermissions",
        ),
        ("hooks",): _Limit("Claude Code", "hooks are never executed; write a middleware", _is_set),
        ("isolation",): _Limit("Claude Code", "the tools work where the program runs", _is_set),
        ("readonly", "is_readonly"): _Limit("Cursor", _LISTS, _is_set),
        ("permission", "permissions"): _Limit("OpenCode", _LISTS, _is_set),
        ("steps", "maxSteps"): _Limit("OpenCode", "use maxTurns", _is_set),
        ("disable", "disabled"): _Limit("OpenCode", "remove the file or rename it to .txt", _is_set),
        ("mode",): _Limit("OpenCode", "agents can delegate to it", lambda mode: mode == "primary"),
        ("agents", "subagents"): _Limit("VS Code", "use Task(a, b) in tools", _is_given),
        ("disable-model-invocation",): _Limit("VS Code", "agents can delegate to it", _is_set),
        ("user-invocable", "user-invokable"): _Limit("VS Code", "users can run it", _is_off),
        ("timeout", "timeout_mins"): _Limit("Gemini CLI", "use the middleware Deadline", _is_set),
        ("sandbox", "sandbox_mode"): _Limit("Codex", "the tools work where the program runs", _is_set),
    }.items()
    for key in keys
}
"""Limits in other programs, without effect here."""

_DESCRIPTIVE: Final = frozenset(
    map(
        folded,
        (
            *(
                "author",
                "authors",
                "owner",
                "team",
                "license",
                "homepage",
                "created",
                "updated",
                "date",
                "status",
            ),
            *(
                "title",
                "displayName",
                "icon",
                "tags",
                "keywords",
                "metadata",
                "domain",
                "priority",
                "examples",
            ),
            *("argument-hint", "when_to_use", "triggers", "capabilities", "background", "is_background"),
            *("hidden", "omitClaudeMd", "proactive", "target", "model_name"),
        ),
    )
)
"""Common keys without a limit; they get no remark."""


def _unused_keys(definition: AgentDefinition) -> Iterator[Remark]:
    unused = {KEY_OF[field]: getattr(definition, field) for field in ("permission_mode", "hooks")}
    for key, value in {**unused, **definition.extra}.items():
        limit = _LIMITS.get(folded(key))
        if limit is not None:
            if limit.limits(value):
                message = f"{key[:60]}: a limit of {limit.program} that has no effect here; {limit.instead}"
                yield Remark(key, message)
        elif folded(key) not in _DESCRIPTIVE and looks_like(key) is None and "tool" not in key.lower():
            # Reading the file has already reported the other keys.
            yield Remark(key, f"{key[:60]}: unknown key, which has no effect here")


ACTED_ON: Final = frozenset(
    {
        "name",
        "description",
        "tools",
        "disallowed_tools",
        "model",
        "context",
        "max_turns",
        "mcp_servers",
        "skills",
        "version",
    }
)
"""Fields that ``Agent.from_definition`` uses. It only stores the others."""


def kept_without_effect(definition: AgentDefinition) -> tuple[str, ...]:
    """Return the keys that change nothing here: all except ``ACTED_ON``."""
    kept = (KEY_OF[field] for field in KEY_OF if field not in ACTED_ON and _has_value(definition, field))
    return (*kept, *definition.extra)


def _has_value(definition: AgentDefinition, field: str) -> bool:
    return getattr(definition, field) is not None
