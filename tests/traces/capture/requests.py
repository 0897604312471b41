"""Strategies for recorded requests, and for requests with exactly one changed part."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import strategies as st

from kantan_agents.testing.strategies import json_values
from kantan_agents.traces.capture import ModelRequest, OutputRequest, ToolDefinition
from kantan_agents.traces.capture.compare import same

texts = st.text(max_size=8)
names = st.text("abc", min_size=1, max_size=2)
values = json_values(max_leaves=4)
leaves = values.filter(lambda value: not isinstance(value, dict))
objects = st.dictionaries(names, values, max_size=2)
items = st.lists(st.fixed_dictionaries({"role": names, "content": texts}), max_size=4)


def tools(kind: str) -> st.SearchStrategy[list[ToolDefinition]]:
    """Return a strategy for tools of which no two have the same name."""
    tool = st.builds(
        ToolDefinition,
        kind=st.just(kind),
        name=names,
        description=texts,
        parameters=st.none() | objects,
        is_strict=st.booleans(),
        server=st.none() | names,
        name_on_server=st.none() | names,
        names=st.lists(names, max_size=2),
        options=objects,
    )
    return st.lists(tool, max_size=3, unique_by=lambda tool: tool.name)


outputs = st.builds(OutputRequest, names, objects, st.sampled_from(["native", "tool", "prompt"]))
requests = st.builds(
    ModelRequest,
    instructions=st.none() | texts,
    input=texts | items,
    settings=objects,
    tools=tools("function"),
    handoffs=tools("handoff"),
    output=st.none() | outputs,
    options=objects,
)


@st.composite
def one_part_changed(draw: Any) -> tuple[ModelRequest, ModelRequest, str]:
    """Return a request, the same with one part changed, and the name of that part."""
    request = draw(requests)
    changes = [_instructions, _input, _setting, _new_setting, _output]
    changes += [_tool, _no_tool, _new_name] if request.tools or request.handoffs else []
    changed, part = draw(st.sampled_from(changes))(draw, request)
    return request, changed, part


def _evolved(value: Any, changes: dict[str, Any]) -> Any:
    return attrs.evolve(value, **changes)


def _other(draw: Any, strategy: st.SearchStrategy[Any], value: Any) -> Any:
    return draw(strategy.filter(lambda other: not same(other, value)))


def _instructions(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    return attrs.evolve(request, instructions=_other(draw, texts, request.instructions)), "instructions"


def _input(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    if isinstance(request.input, str) or not request.input:
        return attrs.evolve(request, input=_other(draw, texts, request.input)), "input"
    at = draw(st.integers(0, len(request.input) - 1))
    # No other item has this role, so that it can be taken for none of them.
    changed = [*request.input]
    changed[at] = {"role": "changed", "content": draw(texts)}
    return attrs.evolve(request, input=changed), f"input[{at}]"


def _setting(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    field = draw(st.sampled_from(["settings", "options"]))
    before = getattr(request, field)
    if not before:
        return _new_setting(draw, request)
    key = draw(st.sampled_from(sorted(before)))
    after = {**before, key: _other(draw, leaves, before[key])}
    return _evolved(request, {field: after}), f"{field}.{key}"


def _new_setting(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    field = draw(st.sampled_from(["settings", "options"]))
    after = {**getattr(request, field), "temperature": draw(values)}
    return _evolved(request, {field: after}), f"{field}.temperature"


def _output(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    if request.output is None:
        return attrs.evolve(request, output=draw(outputs)), "output"
    field, of_field = draw(
        st.sampled_from([("name", texts), ("schema", objects), ("mode", texts), ("is_strict", st.booleans())])
    )
    value = _other(draw, of_field, getattr(request.output, field))
    return attrs.evolve(request, output=_evolved(request.output, {field: value})), f"output.{field}"


def _chosen(draw: Any, request: ModelRequest) -> tuple[str, int, list[ToolDefinition]]:
    where = draw(st.sampled_from([field for field in ("tools", "handoffs") if getattr(request, field)]))
    shown = list(getattr(request, where))
    return where, draw(st.integers(0, len(shown) - 1)), shown


def _tool(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    where, at, shown = _chosen(draw, request)
    fields = {
        "kind": texts,
        "description": texts,
        "parameters": st.none() | objects,
        "is_strict": st.booleans(),
        "server": st.none() | texts,
        "name_on_server": st.none() | texts,
        "names": st.lists(texts, max_size=2),
    }
    field = draw(st.sampled_from(sorted(fields)))
    name = shown[at].name
    value = _other(draw, fields[field], getattr(shown[at], field))
    shown[at] = _evolved(shown[at], {field: value})
    return _evolved(request, {where: shown}), f"{where}.{name}.{field}"


def _no_tool(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    where, at, shown = _chosen(draw, request)
    gone = shown.pop(at)
    return _evolved(request, {where: shown}), f"{where}.{gone.name}"


def _new_name(draw: Any, request: ModelRequest) -> tuple[ModelRequest, str]:
    where, at, shown = _chosen(draw, request)
    before = shown[at].name
    shown[at] = attrs.evolve(shown[at], name="renamed", names=("renamed",))
    return _evolved(request, {where: shown}), f"{where}.{before}.name"
