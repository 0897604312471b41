"""Names the differing parts of two requests: none exactly if their hashes are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, Literal

import attrs

from kantan_agents.traces.capture.calls import (
    JSONValue,
    ModelAnswer,
    ModelRequest,
    OutputRequest,
    ToolDefinition,
)
from kantan_agents.traces.capture.canonical import canonical, in_common
from kantan_agents.traces.capture.diff_text import ABSENT, short_diff

_TOOL_FIELDS: Final = (
    "kind",
    "description",
    "parameters",
    "is_strict",
    "server",
    "name_on_server",
    "names",
)
_OUTPUT_FIELDS: Final = ("name", "schema", "mode", "is_strict")


@attrs.frozen
class Difference:
    """One part in which two requests differ.

    Attributes:
        part: ``"instructions"``, ``"input"`` for a str, ``"input[3]"`` (an added item's index is in the later
            input), ``"settings.temperature"``, ``"tools.look"``, ``"tools.look#2"`` for a repeated name,
            ``"tools.look.description"``, ``"tools.order"``, ``"handoffs.…"`` likewise, ``"output.schema"``,
            ``"options.previous_response_id"``.
        before: None for an added part.
        after: None for a removed part.
        kind: ``"changed"``, ``"added"`` or ``"removed"``.
    """

    part: str
    before: JSONValue
    after: JSONValue
    kind: Literal["changed", "added", "removed"] = "changed"

    @property
    def diff(self) -> str:
        """The differing lines, each after ``-`` or ``+``; truncated if long."""
        return short_diff(
            ABSENT if self.kind == "added" else self.before,
            ABSENT if self.kind == "removed" else self.after,
        )

    def __str__(self) -> str:
        return f"{self.part} {self.kind}\n{self.diff}"


def differences(recorded: ModelRequest, now: ModelRequest) -> list[Difference]:
    """Return the differing parts in the order in which a user would look.

    The input is last, because it also differs if something before it does.
    """
    if recorded is now or recorded.hash == now.hash:
        return []
    return [
        *_value("instructions", recorded.instructions, now.instructions),
        *_tools("tools", recorded.tools, now.tools),
        *_tools("handoffs", recorded.handoffs, now.handoffs),
        *_output(recorded.output, now.output),
        *_mapping("settings", recorded.settings, now.settings),
        *_mapping("options", recorded.options, now.options),
        *_input(recorded.input, now.input),
    ]


def answer_differences(recorded: ModelAnswer | None, now: ModelAnswer | None) -> list[Difference]:
    """Return the differing output items as the parts ``"answer[0]"`` and so on."""
    before = () if recorded is None else recorded.output
    return [*_items("answer", before, () if now is None else now.output)]


def same(one: Any, other: Any) -> bool:
    """Return whether the canonical JSON is equal; for ``1``, ``1.0`` and ``True`` it is not."""
    return one is other or canonical(one) == canonical(other)


def _value(part: str, before: Any, after: Any) -> Iterator[Difference]:
    if not same(before, after):
        yield Difference(part, before, after)


def _mapping(part: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for key in (*before, *(key for key in after if key not in before)):
        inner = f"{part}.{key}"
        if key not in after:
            yield Difference(inner, before[key], None, "removed")
        elif key not in before:
            yield Difference(inner, None, after[key], "added")
        elif isinstance(before[key], Mapping) and isinstance(after[key], Mapping):
            yield from _mapping(inner, before[key], after[key])
        else:
            yield from _value(inner, before[key], after[key])


def _output(before: OutputRequest | None, after: OutputRequest | None) -> Iterator[Difference]:
    if before is None or after is None:
        yield from _present("output", before, after)
        return
    for name in _OUTPUT_FIELDS:
        yield from _value(f"output.{name}", getattr(before, name), getattr(after, name))


def _present(part: str, before: Any, after: Any) -> Iterator[Difference]:
    if before is None and after is not None:
        yield Difference(part, None, attrs.asdict(after), "added")
    elif before is not None and after is None:
        yield Difference(part, attrs.asdict(before), None, "removed")


def _tools(
    part: str, before: Sequence[ToolDefinition], after: Sequence[ToolDefinition]
) -> Iterator[Difference]:
    old, new = _by_label(before), _by_label(after)
    renamed = _renamed(old, new)
    for label, tool in old.items():
        if label in new:
            yield from _tool(f"{part}.{label}", tool, new[label])
        elif label in renamed:
            yield Difference(f"{part}.{label}.name", tool.name, new[renamed[label]].name)
        else:
            yield from _present(f"{part}.{label}", tool, None)
    targets = {*renamed.values()}
    for label, tool in new.items():
        if label not in old and label not in targets:
            yield from _present(f"{part}.{label}", None, tool)
    back = {later: earlier for earlier, later in renamed.items()}
    order = [label for label in old if label in new or label in renamed]
    order_now = [back.get(label, label) for label in new if label in old or label in targets]
    if order != order_now:
        yield Difference(f"{part}.order", order, order_now)


def _by_label(tools: Sequence[ToolDefinition]) -> dict[str, ToolDefinition]:
    seen: Counter[str] = Counter()
    labelled: dict[str, ToolDefinition] = {}
    for tool in tools:
        seen[tool.name] += 1
        label = tool.name if seen[tool.name] == 1 else f"{tool.name}#{seen[tool.name]}"
        while label in labelled:
            seen[tool.name] += 1
            label = f"{tool.name}#{seen[tool.name]}"
        labelled[label] = tool
    return labelled


def _renamed(old: Mapping[str, ToolDefinition], new: Mapping[str, ToolDefinition]) -> dict[str, str]:
    gone = [label for label in old if label not in new]
    come = [label for label in new if label not in old]
    renamed: dict[str, str] = {}
    for label in gone:
        for other in come:
            if other not in renamed.values() and _differ_in_name_only(old[label], new[other]):
                renamed[label] = other
                break
    return renamed


def _differ_in_name_only(one: ToolDefinition, other: ToolDefinition) -> bool:
    named = attrs.evolve(other, name=one.name, names=one.names)
    return one.name != other.name and same(attrs.asdict(one), attrs.asdict(named))


def _tool(part: str, before: ToolDefinition, after: ToolDefinition) -> Iterator[Difference]:
    for name in _TOOL_FIELDS:
        yield from _value(f"{part}.{name}", getattr(before, name), getattr(after, name))
    yield from _mapping(f"{part}.options", before.options, after.options)
    # The number of a repeated name may be part of another name.
    yield from _value(f"{part}.name", before.name, after.name)


def _input(before: Any, after: Any) -> Iterator[Difference]:
    if isinstance(before, str) or isinstance(after, str):
        yield from _value("input", before, after)
    else:
        yield from _items("input", before, after)


def _items(part: str, before: Sequence[Any], after: Sequence[Any]) -> Iterator[Difference]:
    old, new = [*map(canonical, before)], [*map(canonical, after)]
    # The matcher looks for the longest common part, which may hide a common prefix and suffix.
    first = in_common(old, new)
    last = in_common(old[first:][::-1], new[first:][::-1])
    middle = SequenceMatcher(None, old[first : len(old) - last], new[first : len(new) - last], autojunk=False)
    for change, *ends in middle.get_opcodes():
        if change == "equal":
            continue
        i, i_end, j, j_end = (first + end for end in ends)
        changed = min(i_end - i, j_end - j)
        for at in range(changed):
            yield Difference(f"{part}[{i + at}]", before[i + at], after[j + at])
        for at in range(i + changed, i_end):
            yield Difference(f"{part}[{at}]", before[at], None, "removed")
        for at in range(j + changed, j_end):
            yield Difference(f"{part}[{at}]", None, after[at], "added")
