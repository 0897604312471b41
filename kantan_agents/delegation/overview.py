"""The text by which a model chooses whom to delegate to."""

from __future__ import annotations

from collections.abc import Iterable

from kantan_agents.definitions import AgentDefinition

_INTRODUCTION = (
    "Have another agent do a task and get its answer. It sees nothing of this conversation, only the "
    "prompt, so say there all that it needs to know. Several calls at once are worked on at the same time."
)
_LONGEST_DESCRIPTION = 500
_LONGEST = 16_000


def overview(definitions: Iterable[AgentDefinition]) -> str:
    """Return the description of the tool: what it does, and the agents there are.

    Where there are very many, the later ones are named without their descriptions, and then only counted:
    a model reads all of it at every turn.
    """
    lines = [_INTRODUCTION, "", "Values of subagent_type:"]
    length, left = 0, list(definitions)
    while left and length < _LONGEST:
        definition = left.pop(0)
        lines.append(f"- {definition.name}: {_short(definition.description)}")
        length += len(lines[-1])
    if left:
        named = _names(left, _LONGEST // 4)
        lines.append(f"- also: {', '.join(named)}" if named else "")
        if len(named) < len(left):
            lines[-1] += f", and {len(left) - len(named)} more"
    return "\n".join(lines)


def _names(definitions: list[AgentDefinition], most: int) -> list[str]:
    named: list[str] = []
    for definition in definitions:
        most -= len(definition.name)
        if most < 0:
            break
        named.append(definition.name)
    return named


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST_DESCRIPTION else f"{words[: _LONGEST_DESCRIPTION - 3]}..."
