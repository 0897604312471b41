from __future__ import annotations

import logging
import re
from collections import UserDict, UserList
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, Prompt
from kantan_agents.core.templating import compile_template, render_strictly, render_template
from kantan_agents.errors import InvalidOptionError, RenderError, UndefinedPlaceholderError
from kantan_agents.testing import ScriptedModel

keys = st.text(st.characters(exclude_characters="{}.", exclude_categories=["Z", "C"]), min_size=1)
leaves = st.one_of(st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False))
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)
MARKER = re.compile(r"\{\{\s*\$(ctx|env)")


def paths(value: Any, prefix: Any = ()) -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*prefix, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, (*prefix, str(index)))
    if prefix:
        yield prefix, value


@given(st.text(st.characters(codec="utf-8")), st.dictionaries(keys, trees))
def test_text_without_markers_is_unchanged(text: Any, context: Any) -> None:
    if not MARKER.search(text):
        assert render_template(text, context, allow_env=True) == text


@given(st.text(alphabet="{}$ctxenv. a\n"), st.dictionaries(keys, leaves))
def test_only_complete_markers_are_replaced(text: Any, context: Any) -> None:
    rendered = render_template(text, context)
    literal = "".join(part for part in compile_template(text) if isinstance(part, str))
    if not any(not isinstance(part, str) for part in compile_template(text)):
        assert rendered == text == literal


@given(st.dictionaries(keys, trees))
def test_any_nesting_of_mappings_and_lists_is_reached(tree: Any) -> None:
    for path, value in paths(tree):
        assert render_template("<{{ $ctx." + ".".join(path) + " }}>", tree) == f"<{value}>"


@given(st.text(), st.text())
def test_inserted_values_are_never_rendered_again(before: Any, secret: Any) -> None:
    context = {"user": before + "{{ $ctx.secret }}{{ $env.HOME }}", "secret": secret}
    assert render_template("{{$ctx.user}}", context, allow_env=True) == context["user"]


@given(st.dictionaries(keys, trees), st.lists(keys, min_size=1))
def test_missing_keys_render_as_an_empty_string(tree: Any, path: Any) -> None:
    tree.pop(path[0], None)
    assert render_template("a{{ $ctx." + ".".join(path) + " }}b", tree) == "ab"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x":{{y}}}', '{"x":{{y}}}'),
        ("{{ user }} {{ ctx.user }}", "{{ user }} {{ ctx.user }}"),
        ("{{ $context.user }}", "{{ $context.user }}"),
        ("{{{$ctx.name}}}", "{Bo}"),
        ("{{ $ctx.name", "{{ $ctx.name"),
        ("{{ $ctx }}|{{ $ctx. }}", "|"),
        ("{{\n$ctx.name\t}}", "Bo"),
        ("{{ $ctx.name.upper }}", ""),
        ("{{ $ctx.items.1 }}{{ $ctx.items.2 }}{{ $ctx.items.-1 }}", "b"),
        ("{{ $ctx.user.first name }}", "Bo B"),
        ("{{ $ctx.dotted.key }}", "flat"),
        ("{{ $ctx.items.99999999999999999999999 }}", ""),
        ("", ""),
    ],
)
def test_markers(text: Any, expected: Any) -> None:
    context = {
        "name": "Bo",
        "items": ("a", "b"),
        "user": UserDict({"first name": "Bo B"}),
        "dotted.key": "flat",
    }
    assert render_template(text, context) == expected


def test_sequences_are_indexed_and_strings_are_not() -> None:
    assert render_template("{{ $ctx.l.0 }}{{ $ctx.s.0 }}", {"l": UserList(["x"]), "s": "y"}) == "x"


def test_env_needs_permission(monkeypatch: Any) -> None:
    monkeypatch.setenv("PLACE", "Kyoto")
    assert render_template("{{ $env.PLACE }}", {}) == ""
    assert render_template("{{ $env.PLACE }}{{ $env.NOT_SET }}", {}, allow_env=True) == "Kyoto"


@pytest.mark.parametrize("name", ["KANTAN_AGENTS_KEY", "kantan_agents_key", " KANTAN_AGENTS_KEY "])
def test_the_key_that_signs_runs_is_never_rendered(name: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("KANTAN_AGENTS_KEY", "s3cret")
    assert render_template(f"{{{{ $env.{name} }}}}", {}, allow_env=True) == ""


def test_attributes_are_never_followed() -> None:
    class User:
        password = "secret"

        def __str__(self) -> Any:
            return "user"

    assert render_template("{{ $ctx.u }}{{ $ctx.u.password }}", {"u": User()}) == "user"


def test_a_value_that_cannot_be_converted_to_text_is_e77_and_names_the_marker() -> None:
    class Broken:
        def __str__(self) -> None:
            raise ZeroDivisionError("no text")

    with pytest.raises(RenderError) as caught:
        render_template("Hi {{ $ctx.who.x }}", {"who": {"x": Broken()}})
    assert str(caught.value) == (
        "[kantan-agents][E77] Cannot render {{ $ctx.who.x }}: ZeroDivisionError: no text"
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_long_hostile_text_is_scanned_in_linear_time() -> None:
    # Quadratic work over 200,000 characters would take minutes; this returns at once.
    for piece in ("{{", "{{ $ctx.", "{{ " + " " * 50, "{{ $ctx." + " " * 199_000, "{{ $ctx" + " " * 199_000):
        text = piece * (200_000 // len(piece))
        assert render_template(text, {}) == text


class TestStrict:
    """A marker without a value is E48, which names the key, the nearest one and the prompt."""

    @pytest.mark.parametrize(
        ("marker", "reason"),
        [
            ("$ctx.usr.name", "the context has no key 'usr'; the nearest key is 'user'"),
            ("$ctx.user.nmae", "$ctx.user has no key 'nmae'; the nearest key is 'name'"),
            ("$ctx.user.zzz", "$ctx.user has no key 'zzz'"),
            ("$ctx.items.2", "$ctx.items is a list of 2, and has no index '2'"),
            ("$ctx.items.first", "$ctx.items is a list of 2, and has no index 'first'"),
            ("$ctx.user.name.first", "$ctx.user.name is of type str, and has no key 'first'"),
            ("$env.REGION", "environment variables are not allowed; create the agent with allow_env=True"),
        ],
    )
    @pytest.mark.parametrize("by_agent", [True, False])
    async def test_a_marker_without_a_value_ends_the_run_before_a_model_is_called(
        self, marker: str, reason: str, by_agent: bool
    ) -> None:
        model = ScriptedModel([])
        prompt = Prompt("support", "v4", f"Help {{{{ {marker} }}}}.", strict=not by_agent)
        agent = Agent("a", prompt, model=model, strict=by_agent)
        context = {"user": {"name": "Aiko"}, "items": ["lamp", "rug"]}
        with pytest.raises(UndefinedPlaceholderError) as caught:
            await agent.run_async("hi", context)
        assert str(caught.value) == (
            f"[kantan-agents][E48] Cannot render {{{{ {marker} }}}} of prompt 'support' (v4): {reason}"
        )
        assert isinstance(caught.value, RenderError)
        assert not model.calls

    async def test_the_instructions_of_an_agent_without_a_prompt_are_named_after_the_agent(self) -> None:
        agent = Agent("geo", "Hi {{ $ctx.nmae }}", strict=True)
        with pytest.raises(UndefinedPlaceholderError, match=r"of the instructions of agent 'geo': .* 'name'"):
            await agent.render({"name": "Aiko"})

    async def test_the_prompt_of_a_subagent_file_is_strict_if_its_agent_is(self) -> None:
        definition = AgentDefinition("geo", "Knows.", "Hi {{ $ctx.citty }}", context={"city": "Oslo"})
        for agent in (
            Agent.from_definition(definition, strict=True),
            Agent.from_definition(attrs.evolve(definition, context=None), strict=True),
        ):
            with pytest.raises(UndefinedPlaceholderError, match="of prompt 'geo'"):
                await agent.render({"city": "Oslo"})

    def test_an_environment_variable_that_is_not_set_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("REGION", "")
        assert render_strictly("<{{ $env.REGION }}>", {}, allow_env=True) == "<>"
        monkeypatch.delenv("REGION")
        with pytest.raises(UndefinedPlaceholderError, match="the environment variable 'REGION' is not set"):
            render_strictly("<{{ $env.REGION }}>", {}, allow_env=True)
        with pytest.raises(UndefinedPlaceholderError, match="never readable"):
            render_strictly("{{ $env.KANTAN_AGENTS_KEY }}", {}, allow_env=True)

    @given(st.dictionaries(keys, trees), st.lists(keys, min_size=1, max_size=3))
    def test_strict_differs_only_where_a_marker_has_no_value(self, tree: Any, path: list[str]) -> None:
        known = {".".join(one) for one, _ in paths(tree)}
        text = "<{{ $ctx." + ".".join(path) + " }}>"
        if ".".join(path) in known:
            assert render_strictly(text, tree) == render_template(text, tree)
        else:
            assert render_template(text, tree) == "<>"
            with pytest.raises(UndefinedPlaceholderError):
                render_strictly(text, tree)

    @pytest.mark.parametrize("wrong", ["yes", 1, None])
    def test_strict_of_a_prompt_is_a_bool(self, wrong: Any) -> None:
        with pytest.raises(InvalidOptionError, match=r"Prompt\.strict"):
            Prompt("a", "v1", "b", strict=wrong)


@pytest.mark.parametrize(
    ("marker", "warning"),
    [
        ("$ctx.client.nmae", "$ctx.client has no key 'nmae'; the nearest key is 'name'"),
        ("$ctx.orders.1.stats", "$ctx.orders.1 has no key 'stats'; the nearest key is 'state'"),
        ("$ctx.client.line2", None),
        ("$ctx.client.nickname", None),
        ("$ctx.orders.2.stats", None),
        ("$ctx.client.name.frist", None),
    ],
)
def test_an_almost_existing_key_is_logged_at_any_depth(
    caplog: pytest.LogCaptureFixture, marker: str, warning: str | None
) -> None:
    context = {"client": {"name": "A", "line1": "x"}, "orders": [{}, {"state": "sent"}]}
    with caplog.at_level(logging.WARNING, "kantan_agents.run"):
        for _ in range(2):
            assert render_template(f"<{{{{ {marker} }}}}>", context) == "<>"
    expected = [] if warning is None else [f"{{{{ {marker} }}}} renders as empty text: {warning}"]
    assert [record.message for record in caplog.records] == expected


def test_an_almost_existing_key_is_logged_once_and_renders_as_empty_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "kantan_agents.run"):
        for _ in range(3):
            assert render_template("<{{ $ctx.custmer.name }}>", {"customer": {"name": "A"}}) == "<>"
        assert render_template("<{{ $ctx.optional_key }}{{ $ctx.x }}>", {"customer": {}, "y": 1}) == "<>"
    [record] = caplog.records
    assert record.message == (
        "{{ $ctx.custmer.name }} renders as empty text: the context has no key 'custmer'; "
        "the nearest key is 'customer'"
    )
