"""Attributes and events of runs and agents."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from agents import RunState

from kantan_agents.core.pipeline import Run
from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.values import attribute_value, attributes_of, named_value, text_value


def of_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's metadata as attributes."""
    found: dict[str, Any] = attributes_of(metadata, names.METADATA)
    for key, attribute in (("agent_name", names.AGENT_NAME), ("agent_run_id", names.RUN_ID)):
        if key in metadata:
            found[attribute] = attribute_value(metadata[key])
    return found | prompt_of(metadata)


def conversation_of(run: Run | None) -> str | None:
    """Return the id of the conversation."""
    options = {} if run is None else run.options
    session, found = options.get("session"), options.get("conversation_id")
    if session is not None:
        # One at OpenAI raises before it has an id.
        with suppress(Exception):
            found = session.session_id if getattr(session, "groups_traces", True) else None
    return found if isinstance(found, str) and found.strip() else None


def shared_of(conversation: str | None, metadata: Mapping[str, Any], user_key: str | None) -> dict[str, str]:
    """Return the attributes by which backends group spans."""
    found = {}
    if conversation:
        found = dict.fromkeys((names.CONVERSATION_ID, names.SESSION_ID), text_value(conversation))
    user = metadata.get(user_key) if user_key is not None else None
    if user_key is not None and type(user) in (str, int) and user != "":
        found[names.USER_ID] = str(named_value(user_key, str(user)))
    return found


def prompt_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes for the prompt; none for an unversioned str."""
    if "prompt_version" not in metadata:
        return {}
    named = {
        names.PROMPT_NAME: metadata.get("prompt_name"),
        names.PROMPT_VERSION: metadata["prompt_version"],
    }
    return {name: attribute_value(value) for name, value in named.items() if value is not None}


def approvals_needed(run: Run | None) -> list[dict[str, Any]]:
    """Return an event for each call that awaits approval."""
    return [_of_approval(item) for item in getattr(getattr(run, "result", None), "interruptions", None) or ()]


def approvals_given(run: Run | None) -> list[dict[str, Any]]:
    """Return an event for each call decided before the run resumed."""
    state = None if run is None else run.input
    if not isinstance(state, RunState):
        return []
    # The state has no public way to the answers.
    wrapper = getattr(state, "_context", None)
    events = []
    for item in state.get_interruptions():
        event = _of_approval(item)
        if wrapper is not None:
            decided = wrapper.get_approval_status(item.name or "", item.call_id or "", existing_pending=item)
            if decided is not None:
                events.append({**event, names.ANSWER: "approved" if decided else "rejected"})
    return events


def _of_approval(item: Any) -> dict[str, Any]:
    found = {names.TOOL_NAME: text_value(item.name or ""), names.TOOL_CALL_ID: text_value(item.call_id or "")}
    agent = getattr(item, "agent", None)
    return found if agent is None else {**found, names.AGENT_NAME: text_value(agent.name)}


def of_verdict(data: Any, agent: str | None, *, has_content: bool) -> dict[str, Any] | None:
    """Return the event for a rubric with a score."""
    rubric = data.get("rubric") if isinstance(data, dict) else None
    score = rubric.get("score") if isinstance(rubric, dict) else None
    if not isinstance(rubric, dict) or not isinstance(score, (int, float)):
        return None
    comment = str(rubric.get("comment") or "")
    name = agent if agent is not None else comment.partition(":")[0]
    event: dict[str, Any] = {names.EVALUATION_NAME: text_value(name), names.EVALUATION_SCORE: float(score)}
    if has_content:
        comments = rubric.get("comments")
        text = "\n".join(map(str, comments)) if isinstance(comments, list) else comment
        if text:
            event[names.EVALUATION_EXPLANATION] = text_value(text)
    return event


def of_refusal(data: Any, *, has_content: bool) -> dict[str, Any]:
    """Return the event for a denied tool call."""
    data = data if isinstance(data, dict) else {}
    named = {
        names.TOOL_NAME: data.get("tool"),
        names.CODE: data.get("code"),
        names.RULE: data.get("rule"),
        names.LAYERS: data.get("layers") or None,
        names.AGENT_NAME: data.get("agent"),
        names.ANSWER: data.get("answer"),
        names.TOOL_ARGUMENTS: data.get("arguments") if has_content else None,
    }
    return {name: attribute_value(value) for name, value in named.items() if value is not None}
