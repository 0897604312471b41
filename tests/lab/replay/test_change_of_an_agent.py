"""How a change alters an agent, and which changes are refused."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings

from kantan_agents import Agent, Middleware, Prompt
from kantan_agents.errors import InvalidChangeError, ModelNotFoundError, NoChangeError
from kantan_agents.lab import Change
from kantan_agents.lab.experiment.reached import Reached
from kantan_agents.lab.replay.changed_agent import changed_agent as changed_with_its_parts
from kantan_agents.lab.replay.changed_agent import changes_of, hash_of
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.lab.replay.cohorts import HARMLESS, Recorder, recording


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path / "traces.db") as recorder:
        yield recorder


def changed_agent(agent: Agent[Any], changes: Sequence[Change]) -> Agent[Any]:
    return changed_with_its_parts(Reached(agent, {}), changes).agent


def look(place: str) -> str:
    """Look somewhere."""
    return place


def an_agent(**options: Any) -> Agent[Any]:
    given: dict[str, Any] = {"model": ScriptedModel(["done"]), "tools": [look], **options}
    return Agent("a", given.pop("instructions", Prompt("p", "v1", "Hi")), **given)


def test_a_text_keeps_the_name_of_the_prompt(tmp_path: Path) -> None:
    file = tmp_path / "prompt.md"
    file.write_text("Hello\n")
    for given in ("Hello", file):
        prompt: Any = changed_agent(an_agent(), [Change.prompt(given)]).instructions
        assert (prompt.name, prompt.text) == ("p", "Hello")
        assert prompt.version.startswith("changed-")
    whole = Prompt("p", "v2", "Hello")
    assert changed_agent(an_agent(), [Change.prompt(whole)]).instructions is whole
    assert changed_agent(an_agent(instructions="Hi"), [Change.prompt("Hello")]).instructions == "Hello"


def test_settings_are_changed_one_by_one() -> None:
    agent = an_agent(model_settings=ModelSettings(temperature=0.5, top_p=0.2))
    settings = changed_agent(agent, [Change.settings(temperature=0.0)]).sdk_agent.model_settings
    assert (settings.temperature, settings.top_p) == (0.0, 0.2)
    assert agent.sdk_agent.model_settings.temperature == 0.5


def test_the_definition_of_one_tool_is_changed() -> None:
    agent = an_agent()
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string", "maxLength": 3}},
        "required": ["place"],
        "additionalProperties": False,
    }
    changed = changed_agent(agent, [Change.tool("look", description="Search.", parameters=schema)])
    (tool,) = changed.tools
    (before,) = agent.tools
    assert (tool.description, tool.params_json_schema) == ("Search.", schema)  # type: ignore[union-attr]
    assert before.description == "Look somewhere."  # type: ignore[union-attr]


def test_middleware_is_added_outside_of_the_agents_own(db: Recorder) -> None:
    order: list[str] = []

    class Note(Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        async def model_call(self, call: Any, call_next: Any) -> Any:
            order.append(self.name)
            return await call_next(call)

    trace_id = db.run(an_agent(middleware=[Note("own")]))
    order.clear()
    db.replay([trace_id], an_agent(middleware=[Note("own")]), Change.middleware(Note("new")))
    assert order == ["new", "own"]


def test_rules_and_model_reach_the_run(db: Recorder) -> None:
    trace_id = db.run(an_agent())
    with OfflineServer(["done"]) as server:
        experiment = db.replay([trace_id], an_agent(), Change.model(server.bundle("new")))
        assert [request.model for request in server.requests] == ["new"]
    assert experiment.changes == ("model=new",)
    again = ScriptedModel(["done"])
    db.replay([trace_id], an_agent(model=again), Change.rules({"deny": ["look"]}))
    assert not again.calls[0].tools


SAME_MODEL = ScriptedModel([])


class Pass(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        return await call_next(call)


NOTED = Pass()


@pytest.mark.parametrize(
    ("options", "change", "what"),
    [
        ({}, Change.prompt("Hi"), "prompt"),
        ({}, Change.prompt(Prompt("other", "v9", "Hi")), "prompt"),
        ({"model": SAME_MODEL}, Change.model(SAME_MODEL), "model"),
        ({"model_settings": ModelSettings(temperature=0)}, Change.settings(temperature=0), "temperature"),
        ({}, Change.tool("look", description="Look somewhere."), "tool 'look'"),
        ({}, Change.tool("look"), "tool 'look'"),
        ({"middleware": [NOTED]}, Change.middleware(NOTED), "middleware"),
        ({}, Change.middleware(), "middleware"),
        ({}, Change.settings(), "settings"),
    ],
)
def test_a_change_that_changes_nothing_is_an_error(
    options: dict[str, Any], change: Change, what: str
) -> None:
    with pytest.raises(NoChangeError, match=what):
        changed_agent(an_agent(**options), [change])


def test_one_model_under_two_names_is_no_change() -> None:
    with OfflineServer([]) as server:
        agent = an_agent(model=server.bundle("m"))
        with pytest.raises(NoChangeError, match="another name"):
            changed_agent(agent, [Change.model(server.bundle("m"))])


def test_rules_that_all_runs_had_are_no_change(db: Recorder) -> None:
    rules = {"deny": ["look"]}
    trace_id = db.run(an_agent(), context={"tool_rules": rules})
    with pytest.raises(NoChangeError, match="rules"):
        db.replay([trace_id], an_agent(), Change.rules(rules))
    other = db.run(an_agent())
    with pytest.raises(NoChangeError, match="rules"):
        db.replay([other], an_agent(), Change.rules({}))
    assert db.replay([trace_id, other], an_agent(), Change.rules(rules)).planned == 2


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Change.prompt("  "), "not empty"),
        (lambda: Change.prompt(Path("missing.md")), "missing.md: No such file"),
        (lambda: Change.settings(temprature=0), "did you mean 'temperature'"),
        (lambda: Change.settings(temperature="hot"), "settings.temperature"),
        (lambda: Change.rules({"deny": [3]}), "rules"),
        (lambda: Change.tool("look", parameters={"type": "string"}), "object"),
        (lambda: changed_agent(an_agent(), [Change.tool("lok", description="x")]), "did you mean 'look'"),
        (lambda: changed_agent(an_agent(), []), "at least one"),
        (lambda: changed_agent(an_agent(), [HARMLESS, Change.settings(temperature=1)]), "twice"),
        (lambda: changed_agent(an_agent(), [Change.middleware(3)]), "middleware"),
        (lambda: changes_of(["model=x"]), "must be a Change"),  # type: ignore[list-item]
    ],
)
def test_an_invalid_change_says_what_to_do(make: Any, text: str) -> None:
    with pytest.raises(InvalidChangeError, match=text):
        make()


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(ModelNotFoundError, match="no-such-model-at-all"):
        changed_agent(an_agent(), [Change.model("no-such-model-at-all")])


def test_a_prompt_may_only_read_context_values_that_are_known(db: Recorder) -> None:
    def agent() -> Agent[Any]:
        return an_agent(instructions=Prompt("p", "v1", "Hi {{ $ctx.user.name }}"), model=model)

    model = ScriptedModel(["done"])
    trace_id = db.run(agent(), context={"user": {"name": "Aiko"}})
    reads_more = Change.prompt("{{ $ctx.user.name }} has {{ $ctx.plan }}.")
    with pytest.raises(InvalidChangeError, match=r"'plan'.*context="):
        db.replay([trace_id], agent(), reads_more)
    model = ScriptedModel(["done"])
    db.replay([trace_id], agent(), reads_more, context={"plan": "pro"})
    assert model.calls[0].system_instructions == "Aiko has pro."


def test_the_hash_identifies_an_experiment() -> None:
    agent = an_agent()

    def hashed(*changes: Change, more: Any = None) -> str:
        return hash_of(changed_agent(agent, changes), changes, more)

    known = {
        hashed(Change.settings(temperature=0.1)),
        hashed(Change.settings(temperature=0.2)),
        hashed(Change.prompt("One")),
        hashed(Change.prompt("Two")),
        hashed(Change.prompt("Two"), more=["live"]),
        hashed(Change.rules({"deny": ["look"]})),
    }
    assert len(known) == 6
    assert hashed(Change.prompt("One")) in known
