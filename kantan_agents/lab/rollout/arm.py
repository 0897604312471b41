"""The versions that a rollout chooses from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from agents import ModelSettings

from kantan_agents.agent.per_run import ARM_LIMIT
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidRolloutError, KantanAgentsError
from kantan_agents.lab.experiment.identity import plain
from kantan_agents.tool_rules import ToolRules
from kantan_agents.traces.capture.canonical import content_hash


@attrs.frozen
class Arm:
    """One of the versions that a ``Rollout`` chooses from.

        Rollout({"small": Arm(prompt), "large": Arm(prompt, model="gpt-6.1-terra")}, ...)

    Args:
        prompt: Its instructions.
        model: Its model, as for ``Agent``; None for the agent's model.
        model_settings: Its model settings; None for the agent's settings.
        tool_rules: Rules in the shape of ``context["tool_rules"]`` for the runs of this arm, in addition to
            the rules of the agent and of the run. They can deny more, and never allow more. They apply to all
            agents in the run, but not to runs that a tool starts. The control's rules also apply wherever the
            agent works without an arm.

    Raises:
        InvalidRolloutError: E110, an argument is of another type.
        InvalidToolRulesError: E20, the rules have mistakes.
    """

    prompt: str | Prompt
    model: Any = attrs.field(default=None, kw_only=True)
    model_settings: ModelSettings | None = attrs.field(default=None, kw_only=True)
    tool_rules: Mapping[str, Any] | None = attrs.field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.prompt, (str, Prompt)):
            reason = f"must be a Prompt or a str, not {type(self.prompt).__name__}"
            raise InvalidRolloutError(option="Arm.prompt", reason=reason)
        if self.model_settings is not None and not isinstance(self.model_settings, ModelSettings):
            reason = f"must be ModelSettings, not {type(self.model_settings).__name__}"
            raise InvalidRolloutError(option="Arm.model_settings", reason=reason)
        if self.tool_rules is not None:
            if not isinstance(self.tool_rules, Mapping):
                reason = f"must be a dict such as {{'deny': [...]}}, not {type(self.tool_rules).__name__}"
                raise InvalidRolloutError(option="Arm.tool_rules", reason=reason)
            ToolRules.parse(self.tool_rules)

    @property
    def changes(self) -> dict[str, Any]:
        """The options in which an agent with this arm differs from the agent with the rollout."""
        options: dict[str, Any] = {"instructions": self.prompt}
        if self.model is not None:
            options["model"] = self.model
        if self.model_settings is not None:
            options["model_settings"] = self.model_settings
        return options

    @property
    def prompt_id(self) -> str:
        """``prompt_id`` of its runs."""
        # A plain string has no name here; only its hash counts.
        return (
            Prompt("text", "-", self.prompt).resolve_id()
            if isinstance(self.prompt, str)
            else self.prompt.resolve_id()
        )

    def limits(self, name: str) -> tuple[tuple[str, ToolRules], ...]:
        """Return the limits that its rules set for a run.

        Args:
            name: Name of the arm.
        """
        return ((f"{ARM_LIMIT}{name}", ToolRules.parse(self.tool_rules)),) if self.tool_rules else ()

    def described(self) -> dict[str, Any]:
        """Return its definition as JSON data that is the same in every process."""
        prompt = self.prompt
        described: dict[str, Any] = {
            "prompt": prompt.name if isinstance(prompt, Prompt) else None,
            "version": prompt.version if isinstance(prompt, Prompt) else None,
            "prompt_id": self.prompt_id,
            # Includes the prompt's content: an id from a registry may stay when the content changes.
            "text": content_hash(prompt.text if isinstance(prompt, Prompt) else prompt),
        }
        if self.model is not None:
            model = self.model
            name = model if isinstance(model, str) else getattr(model, "model", None)
            described["model"] = name if isinstance(name, str) else type(model).__name__
        if self.model_settings is not None:
            settings = self.model_settings.to_json_dict()
            # Only a hash is stored: headers may hold keys. Unset values are omitted: later SDKs may add some.
            set_ones = {key: value for key, value in settings.items() if value is not None}
            described["settings"] = content_hash(plain(set_ones))
        if self.tool_rules is not None:
            described["rules"] = content_hash(plain(_in_order(self.tool_rules)))
        return described


def _in_order(value: Any) -> Any:
    """Sort every collection of names: sets have no order."""
    if isinstance(value, Mapping):
        return {str(key): _in_order(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset, list, tuple)):
        return sorted((_in_order(inner) for inner in value), key=repr)
    return value


def checked_arms(arms: Any) -> dict[str, Arm]:
    """Return valid arms by name, the control first; E110 if they are not."""
    example = "{'v1': prompt_v1, 'v2': prompt_v2}"
    if not isinstance(arms, Mapping):
        reason = f"must be a dict such as {example}, not {type(arms).__name__}"
        raise InvalidRolloutError(option="arms", reason=reason)
    if len(arms) < 2:  # noqa: PLR2004 - the control and a new arm
        reason = f"must be two or more, the control first, such as {example}"
        raise InvalidRolloutError(option="arms", reason=reason)
    checked: dict[str, Arm] = {}
    for name, value in arms.items():
        if not isinstance(name, str) or not name.strip():
            raise InvalidRolloutError(option="arms", reason=f"must have names, not {name!r}")
        try:
            arm = checked[name] = value if isinstance(value, Arm) else Arm(value)
            _ = arm.prompt_id  # raises an error for an empty string
        except KantanAgentsError as error:
            error.__notes__ = [*getattr(error, "__notes__", ()), f"The arm is {name!r}."]
            raise
    control = next(iter(checked.values()))
    if control.model is not None or control.model_settings is not None:
        reason = (
            f"must begin with the control, which has the model and the settings of the agent; "
            f"give those of {next(iter(checked))!r} to the Agent"
        )
        raise InvalidRolloutError(option="arms", reason=reason)
    seen: dict[str, str] = {}
    for name, arm in checked.items():
        # Two model objects of one name may still answer differently.
        is_object = arm.model is not None and not isinstance(arm.model, str)
        same = seen.setdefault(f"{content_hash(arm.described())} {id(arm.model) if is_object else ''}", name)
        if same != name:
            reason = f"must differ, but {same!r} and {name!r} are the same"
            raise InvalidRolloutError(option="arms", reason=reason)
    return checked
