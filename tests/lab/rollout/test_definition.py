"""Mistakes in the definition of a rollout are errors that say what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings

from kantan_agents import Agent, Prompt, Rollout
from kantan_agents.errors import (
    EmptyPromptTextError,
    InvalidOptionError,
    InvalidRolloutError,
    InvalidToolRulesError,
    ModelNotFoundError,
    RolloutConflictError,
)
from kantan_agents.lab import Arm, promote
from kantan_agents.testing import ScriptedModel
from tests.lab.rollout.trial import ARMS, V1, V2, echo, rollout, shared_of, support


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shares": {"v1": 0.9, "v2": 0.2}}, "shares must sum to 1, not 1.1"),
        ({"shares": {"v1": 0.9}}, "shares must have the share of each arm, such as {'v1': 0.9, 'v2': 0.1}"),
        ({"shares": {"v1": 0.9, "v3": 0.1}}, "shares must have the share of each arm"),
        ({"shares": {"v1": 1.5, "v2": -0.5}}, "shares of 'v1' must be a number from 0 to 1, not 1.5"),
        ({"shares": {"v1": True, "v2": 0}}, "shares of 'v1' must be a number"),
        ({"shares": [0.9, 0.1]}, "shares must have the share of each arm"),
        ({"ramp": None}, "shares is missing: {'v1': 0.9, 'v2': 0.1}"),
        ({"ramp": (0.5, 0.1)}, "ramp must be growing numbers from 0 to 1, such as (0.1, 0.5, 1)"),
        ({"ramp": ()}, "ramp must be growing numbers"),
        ({"ramp": (0.1, "all")}, "ramp must be growing numbers"),
        ({"ramp": (0.2, 1), "shares": {"v1": 0.9, "v2": 0.1}}, "ramp must begin with the share of the new"),
        ({"unit": None}, "unit must be a path in the context such as 'user.id', or a function"),
        ({"unit": "user..id"}, "unit must be a path"),
        ({"metric": ""}, "metric must be a name such as 'rubric', not ''"),
        ({"metric": 3}, "metric must be a name"),
        ({"metric_range": (1, 0)}, "metric_range must be the lowest and the highest score"),
        ({"metric_range": 5}, "metric_range must be the lowest"),
        ({"metric_range": (0, float("inf"))}, "metric_range must be the lowest"),
        ({"guards": {"errors": 0.1}}, "guards has 'errors'; there are error, cost, tokens, latency_p50"),
        ({"guards": {"error": "+2%"}}, "guards of 'error' must be a number from 0 to 1, such as 0.02"),
        ({"guards": {"error": 1}}, "guards of 'error' must be a number from 0 to 1"),
        ({"guards": {"tokens": 1.2}}, "guards of 'tokens' must be like '+20%', not 1.2"),
        ({"guards": {"latency_p95": "20%"}}, "guards of 'latency_p95' must be like '+20%'"),
        ({"guards": {"latency_p0": "+20%"}}, "guards has 'latency_p0'"),
        ({"guards": ["error"]}, "guards must be a dict"),
        ({"guards": {"cost": "+20%"}}, "guards has 'cost', which needs prices="),
        ({"alpha": 0}, "alpha must be between 0 and 1, such as 0.05, not 0"),
        ({"alpha": 1.0}, "alpha must be between 0 and 1"),
        ({"store": 5}, "store must be a TraceStore or a path, not int"),
        ({"name": " "}, "name must be a text, not ' '"),
        ({"on_missing_unit": "ignore"}, "on_missing_unit must be 'control' or 'raise', not 'ignore'"),
        ({"on_verdict": "promote"}, "on_verdict must be a function, not str"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRolloutError) as caught:
        rollout(**options)
    assert str(caught.value).startswith("[kantan-agents][E110] Invalid rollout: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arms", "said"),
    [
        ([V1, V2], "arms must be a dict such as {'v1': prompt_v1, 'v2': prompt_v2}, not list"),
        ({"v1": V1}, "arms must be two or more, the control first"),
        ({"v1": V1, 2: V2}, "arms must have names, not 2"),
        ({"v1": V1, "v2": None}, "Arm.prompt must be a Prompt or a str, not NoneType"),
        ({"v1": V1, "v2": V1}, "arms must differ, but 'v1' and 'v2' are the same"),
        ({"v1": Arm(V1, model="gpt-5"), "v2": V2}, "give those of 'v1' to the Agent"),
    ],
)
def test_a_mistake_in_the_arms_is_named(arms: Any, said: str) -> None:
    with pytest.raises(InvalidRolloutError) as caught:
        rollout(arms=arms)
    assert said in str(caught.value)


def test_arms_are_checked_like_the_options_of_an_agent(tmp_path: Path) -> None:
    with pytest.raises(EmptyPromptTextError) as empty:
        rollout(arms={"v1": V1, "v2": " "})
    assert empty.value.__notes__ == ["The arm is 'v2'."]
    with pytest.raises(InvalidToolRulesError):
        Arm(V2, tool_rules={"denied": ["shell"]})
    with pytest.raises(InvalidRolloutError):
        Arm(V2, tool_rules=["shell"])  # type: ignore[arg-type]
    with pytest.raises(InvalidRolloutError):
        Arm(V2, model_settings={"temperature": 0})  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError):
        rollout(prices={"m": "cheap"})
    with pytest.raises(ModelNotFoundError):
        support(rollout(tmp_path / "t.db", {"v1": V1, "v2": Arm(V2, model="no-such-model-9")}))


def test_arms_may_differ_in_anything_but_the_prompt() -> None:
    made = rollout(
        arms={
            "a": V1,
            "b": Arm(V1, model="gpt-5-mini"),
            "c": Arm(V1, model_settings=ModelSettings(temperature=0.1)),
            "d": Arm(V1, tool_rules={"deny": ["shell"]}),
            "e": V1.text,
        }
    )
    assert list(made.arms) == ["a", "b", "c", "d", "e"]


def test_shares_without_a_ramp_end_with_all_units() -> None:
    made = Rollout(ARMS, shares={"v1": 0.9, "v2": 0.1}, unit="user.id").plan_for("support")
    assert made.ramp == (0.1, 1.0)
    assert Rollout({**ARMS, "v3": "x"}, ramp=(0.3, 1), unit="u").plan_for("a").weights == (0.5, 0.5)


def test_a_rollout_shows_what_it_is(tmp_path: Path) -> None:
    assert repr(rollout()) == "Rollout(['v1', 'v2'], unit='user.id', metric=None)"
    agent = support(rollout(tmp_path / "t.db"))
    assert "support@v1" in repr(agent)
    assert agent.instructions == V1


def test_two_rollouts_of_one_agent_in_a_process_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    first = support(rollout(path))
    other = Prompt("support", "v3", "Be fast.")
    with pytest.raises(RolloutConflictError, match=r"E111.*'support:v1-v3' cannot run.*'support:v1-v2'"):
        support(rollout(path, {"v1": V1, "v3": other}))
    with pytest.raises(RolloutConflictError, match="of this name with other levels of alpha"):
        support(rollout(path, alpha=0.01))
    promote("support", path, arm="v2")
    second = support(rollout(path, {"v2": V2, "v3": other}))
    assert first.instructions == V1
    assert second.instructions == V2


def test_equal_rollouts_of_one_agent_are_one(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    made = [support(rollout(path)) for _ in range(3)]
    assert len({id(shared_of(agent)) for agent in made}) == 1


def test_an_agent_of_another_name_has_a_rollout_of_its_own(tmp_path: Path) -> None:
    one = support(rollout(tmp_path / "t.db"))
    other = one.clone(name="billing", model=echo())
    assert isinstance(other, Agent)
    assert shared_of(other).name == "billing:v1-v2"


def test_keys_in_headers_are_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    settings = ModelSettings(extra_headers={"X-Api-Key": "hunter2secret"})
    agent = support(rollout(path, {"v1": V1, "v2": Arm(V1, model_settings=settings)}))
    assert b"hunter2secret" not in path.read_bytes()
    assert agent.name == "support"


def test_equal_rules_and_settings_are_the_same_plan_in_every_process() -> None:
    def plan(rules: Any, settings: ModelSettings) -> Any:
        arms = {"v1": V1, "v2": Arm(V1, tool_rules=rules, model_settings=settings)}
        return rollout(arms=arms).plan_for("support")

    one = plan({"deny": {"a", "b", "c"}}, ModelSettings(temperature=0.5))
    assert one.difference(plan({"deny": ["c", "b", "a"]}, ModelSettings(temperature=0.5, top_p=None))) is None
    assert one.difference(plan({"deny": ["a", "b"]}, ModelSettings(temperature=0.5))) == "arms"
    assert one.difference(plan({"deny": {"a", "b", "c"}}, ModelSettings(temperature=0.6))) == "arms"


def test_two_model_objects_are_two_arms() -> None:
    class Odd(ScriptedModel):
        model = object()

    arms = {"v1": V1, "a": Arm(V1, model=echo()), "b": Arm(V1, model=echo()), "c": Arm(V1, model=Odd())}
    assert rollout(arms=arms).plan_for("support").arms["c"]["model"] == "Odd"
