"""The stored start of a run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import attrs
from agents import RunConfig, RunState

from kantan_agents.core.context import RESERVED_KEYS
from kantan_agents.core.interception import redacted_data, redacted_input
from kantan_agents.core.pipeline import Run
from kantan_agents.durable.step_bodies import dump, is_plain, load
from kantan_agents.errors import NotStorableError
from kantan_agents.middleware.approve.stored_runs import as_json, state_data
from kantan_agents.middleware.redact.redact import Redact
from kantan_agents.middleware.retry import GIVEN_SETTINGS
from kantan_agents.middleware.slash_commands.user_rules import UserRules
from kantan_agents.tool_rules import ToolRulesMode

_PLAIN_OPTIONS: Final = ("max_turns", "previous_response_id", "conversation_id", "auto_previous_response_id")
_PLAIN_CONFIG: Final = (
    "workflow_name",
    "group_id",
    "trace_id",
    "trace_metadata",
    "trace_include_sensitive_data",
    "tracing_disabled",
)


@attrs.frozen
class StoredRun:
    """The stored start of a run.

    A resumed run has a ``state`` of the SDK instead of an ``input``. ``edits`` are by call id; context keys
    in ``left_out`` must be reloaded. ``is_nested``: it was queued inside another run or span, so its input is
    not a command.
    """

    agent: str
    input: Any = None
    state: Any = None
    edits: Mapping[str, Any] = attrs.field(factory=dict)
    waited_for: str | None = None
    context: dict[str, Any] = attrs.field(factory=dict)
    left_out: tuple[str, ...] = ()
    permissions: Mapping[str, Any] = attrs.field(factory=dict)
    options: Mapping[str, Any] = attrs.field(factory=dict)
    config: Mapping[str, Any] = attrs.field(factory=dict)
    session: str | None = None
    streamed: bool = False
    queue: str | None = None
    tenant: str | None = None
    is_nested: bool = False

    def to_json(self) -> str:
        """Return it as JSON."""
        body = attrs.asdict(self, recurse=False)
        if not self.is_nested:
            del body["is_nested"]  # of most runs, and unknown to earlier versions
        return dump(body)

    @classmethod
    def of_json(cls, run_id: str, text: str) -> StoredRun:
        """Return the run in a JSON string; raises E155."""
        body = load(run_id, "begin", text)
        known = {field.name for field in attrs.fields(cls)}
        given = {name: value for name, value in body.items() if name in known}
        return cls(**{**given, "left_out": tuple(given.get("left_out") or ())})


def stored_run(run: Run, *, may_leave_out: bool) -> StoredRun:
    """Return the storable form of a new run; E151 if there is none."""
    agent = run.agent.name
    state, edits, given = None, {}, run.input
    if isinstance(given, RunState):
        state, edits = _state(agent, given), _edits(run, given)
        given = None
    elif isinstance(given, list):
        given = [_item(item) for item in given]
    # First: the values found in it are stored with the context.
    given = None if given is None else redacted_data(run, redacted_input(run, given))
    session = run.options.get("session")
    kept = kept_keys(run.agent)
    context = stored_context(
        agent, run.context, lambda data: redacted_data(run, data), kept, may_leave_out=may_leave_out
    )
    return StoredRun(
        agent=agent,
        input=given,
        state=redacted_data(run, state),
        edits=edits,
        **context,
        options=_options(agent, run.options),
        config=redacted_data(run, _config(run)),
        session=None if session is None else str(session.session_id),
        streamed=run.is_streamed,
    )


def stored_context(
    agent: str,
    context: Mapping[str, Any],
    redact: Callable[[Any], Any],
    kept: Collection[str] = (),
    *,
    may_leave_out: bool,
) -> dict[str, Any]:
    """Return the fields ``context``, ``left_out`` and ``permissions``; raises E151."""
    stored: dict[str, Any] = {}
    left_out: list[str] = []
    permissions: dict[str, Any] = {}
    for key, value in context.items():
        if key == "result":
            continue
        if isinstance(value, ToolRulesMode):
            permissions[key] = value.value
        elif isinstance(value, UserRules):
            permissions[key] = value.to_dict()
        elif not isinstance(key, str):
            reason = "has a key that is not a str, and would have another one in another process"
            raise NotStorableError(agent=agent, what=f"context[{key!r}]", reason=reason)
        elif is_plain(value) and (key in kept or redact(value) == value):
            stored[key] = value
        elif may_leave_out and key not in RESERVED_KEYS:
            left_out.append(key)
        else:
            problem = "is not JSON" if not is_plain(value) else "has something that is redacted"
            advice = "; pass Durable(reload=...), which puts it into the context of another process"
            reason = f"{problem}{'' if key in RESERVED_KEYS else advice}"
            raise NotStorableError(agent=agent, what=f"context[{key!r}]", reason=reason)
    return {"context": stored, "left_out": tuple(left_out), "permissions": permissions}


def kept_keys(agent: Any) -> frozenset[str]:
    """Return the context keys of ``Redact``; E151 if it restores values that no other process has."""
    redacts = [one for one in agent.layers.middleware if isinstance(one, Redact)]
    if any(one.forgets for one in redacts):
        reason = "are lost with the process; give it keep_in=, or restore=False"
        raise NotStorableError(
            agent=agent.name, what="the values that Redact(restore=True) puts back", reason=reason
        )
    return frozenset(one.keep_in for one in redacts if one.keep_in is not None)


def loaded_context(stored: StoredRun) -> dict[str, Any]:
    """Return the context of a stored run."""
    permissions = {
        # Only code creates these from data. A caller's own values stay unchanged.
        key: ToolRulesMode(value) if isinstance(value, str) else UserRules(value)
        for key, value in stored.permissions.items()
    }
    return {**stored.context, **permissions}


def _item(item: Any) -> Any:
    return item if isinstance(item, Mapping) else item.model_dump(mode="json", exclude_unset=True)


def _edits(run: Run, state: RunState[Any, Any]) -> dict[str, Any]:
    edits = {call: attrs.asdict(edit) for call, edit in getattr(state, "_kantan_edits", {}).items()}
    if redacted_data(run, edits) != edits:
        # Redacted, the arguments would differ from the approved ones.
        reason = (
            "have something that is redacted, and would be stored; approve the call as it is, or reject it"
        )
        raise NotStorableError(
            agent=run.agent.name, what="the arguments that a person has edited", reason=reason
        )
    return edits


def _state(agent: str, state: RunState[Any, Any]) -> Any:
    try:
        return json.loads(json.dumps(state_data(state), default=as_json))
    except (TypeError, ValueError) as error:
        raise NotStorableError(agent=agent, what="the state", reason=f"is not JSON: {error}") from error


def checked_options(agent: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return storable options, without session and ``RunConfig``; E151 if one is not."""
    return _options(agent, options)


def _options(agent: str, options: Mapping[str, Any]) -> dict[str, Any]:
    stored = {}
    for name, value in options.items():
        if name == "session" or value is None:
            continue
        if name not in _PLAIN_OPTIONS:
            reason = "is an object that another process does not have; set it on the agent instead"
            raise NotStorableError(agent=agent, what=f"the option {name}", reason=reason)
        stored[name] = value
    return stored


def _config(run: Run) -> dict[str, Any]:
    agent, config = run.agent.name, run.run_config
    if run.model_provider is not None:
        reason = "is an object that another process does not have; give the agent a model_provider_factory"
        raise NotStorableError(agent=agent, what="run_config.model_provider", reason=reason)
    usual, stored = RunConfig(), {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name == "model_settings":
            value = run.state.get(GIVEN_SETTINGS, value)
        if field.name in _PLAIN_CONFIG:
            if not is_plain(value):
                raise NotStorableError(agent=agent, what=f"run_config.{field.name}", reason="is not JSON")
            if value != getattr(usual, field.name):
                stored[field.name] = value
        elif field.name in _OWN or value == getattr(usual, field.name):
            continue
        else:
            reason = "is an object that another process does not have; set it on the agent instead"
            raise NotStorableError(agent=agent, what=f"run_config.{field.name}", reason=reason)
    return stored


# The library sets these in each run.
_OWN: Final = ("model_provider", "tool_not_found_behavior", "tool_error_formatter")
