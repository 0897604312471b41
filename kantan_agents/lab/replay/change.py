"""``Change``: one difference to try when recorded runs are replayed."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs
from agents import FunctionTool, ModelSettings, UserError
from agents.strict_schema import ensure_strict_json_schema
from pydantic import ValidationError
from typing_extensions import Self

from kantan_agents.agent import Agent
from kantan_agents.core.context import check_context
from kantan_agents.core.prompt import Prompt, hash_text
from kantan_agents.errors import (
    InvalidChangeError,
    KantanAgentsError,
    NoChangeError,
)
from kantan_agents.lab.experiment.identity import plain
from kantan_agents.support.nearest import nearest
from kantan_agents.tool_rules import ToolRules
from kantan_agents.traces.capture.canonical import canonical, copied

RULES: Final = "rules"
MIDDLEWARE: Final = "middleware"


@attrs.frozen
class Change:
    """One change to try in a replay; create it with one of the methods below.

    Attributes:
        what: The part that changes, such as ``"model"`` or ``"settings.temperature"``.
        label: The change in one line, with its new value.
        value: The new value, as JSON data.
        options: Returns the changed options of ``Agent`` for an agent.
        run_rules: The explicit tool rules of every run; None for the recorded rules.
        agent: Name of the agent to change; None for the agent that is run.
    """

    what: str
    label: str
    value: Any
    options: Callable[[Agent[Any]], dict[str, Any]] = attrs.field(repr=False, eq=False)
    run_rules: Mapping[str, Any] | None = None
    agent: str | None = None

    def of(self, agent: str) -> Self:
        """Return the same change for another agent that the run reaches by handoffs or delegation.

            Change.model("gpt-6.1-terra").of("billing")

        The change applies wherever that agent is reached: by a handoff, as a tool of another agent, or by a
        ``task_tool``. All agents of the name are changed, in copies. A plain SDK agent cannot be changed, nor
        an agent behind an SDK agent's own ``as_tool``: put the agent itself into ``tools``. In both cases the
        replay raises E94 and lists the agents that are reached.

        Args:
            agent: Name of the agent.

        Raises:
            InvalidChangeError: E94, the change is of rules or middleware, which belong to the whole run.
        """
        if self.what in (RULES, MIDDLEWARE):
            raise InvalidChangeError(change=self.what, reason=f"it is one of the whole run, not of {agent!r}")
        return attrs.evolve(self, agent=agent, label=f"{self.label} of {agent}")

    @classmethod
    def prompt(cls, prompt: str | Prompt | os.PathLike[str]) -> Self:
        """Change the instructions.

        Args:
            prompt: The new instructions as a string, a ``Prompt``, or the path of a file. A string keeps the
                name of the agent's prompt; its version is derived from its hash.

        Raises:
            InvalidChangeError: E94, the instructions are empty, or the file cannot be read.
        """
        if isinstance(prompt, os.PathLike):
            prompt = _read(Path(prompt))
        text = prompt.text if isinstance(prompt, Prompt) else prompt
        if not isinstance(text, str) or not text.strip():
            raise InvalidChangeError(change="prompt", reason=f"it must be a text that is not empty: {text!r}")
        given = prompt

        def options(agent: Agent[Any]) -> dict[str, Any]:
            before = agent.instructions
            if (before.text if isinstance(before, Prompt) else before) == text:
                raise NoChangeError(change="prompt", reason="the agent has this text already")
            if isinstance(given, Prompt) or not isinstance(before, Prompt):
                return {"instructions": given}
            version = f"changed-{hash_text(text)[:8]}"
            return {"instructions": attrs.evolve(before, text=text, version=version, id=None)}

        return cls("prompt", f"prompt={_short(text)}", text, options)

    @classmethod
    def model(cls, model: Any) -> Self:
        """Change the model: a name, or any other value that ``Agent(model=...)`` takes."""
        shown = model if isinstance(model, str) else getattr(model, "model", None) or type(model).__name__

        def options(agent: Agent[Any]) -> dict[str, Any]:
            if model == agent.given.model:
                raise NoChangeError(change="model", reason=f"the agent has the model {shown!r} already")
            return {"model": model}

        return cls("model", f"model={shown}", str(shown), options)

    @classmethod
    def settings(cls, **settings: Any) -> Self:
        """Change model settings by name, such as ``temperature=0``; the others stay.

        Raises:
            InvalidChangeError: E94, a setting is unknown, or its value is invalid.
        """
        known = [field.name for field in dataclasses.fields(ModelSettings)]
        for name in settings:
            if name not in known:
                reason = f"there is no such setting{_hint(name, known)}"
                raise InvalidChangeError(change=f"settings.{name}", reason=reason)
        what = ", ".join(f"settings.{name}" for name in settings) or "settings"
        try:
            ModelSettings(**settings)
        except ValidationError as error:
            reasons = [f"{one['loc'][0]}: {one['msg']}" for one in error.errors()]
            raise InvalidChangeError(change=what, reason="; ".join(dict.fromkeys(reasons))) from error
        except (TypeError, ValueError) as error:
            raise InvalidChangeError(change=what, reason=_first_line(error)) from error

        def options(agent: Agent[Any]) -> dict[str, Any]:
            before = agent.sdk_agent.model_settings
            if all(getattr(before, name) == value for name, value in settings.items()):
                raise NoChangeError(change=what, reason="the agent has these settings already")
            given = {field.name: getattr(before, field.name) for field in dataclasses.fields(ModelSettings)}
            return {"model_settings": ModelSettings(**{**given, **settings})}

        shown = ", ".join(f"settings.{name}={value}" for name, value in settings.items())
        return cls(what, _short(shown or what), plain(settings), options)

    @classmethod
    def rules(cls, rules: Mapping[str, Any]) -> Self:
        """Change the explicit tool rules of every run; an empty mapping permits everything.

        Raises:
            InvalidChangeError: E94, the rules are invalid.
        """
        try:
            ToolRules.parse(check_context({"tool_rules": rules})["tool_rules"])
        except KantanAgentsError as error:
            raise InvalidChangeError(change="rules", reason=str(error)) from error
        return cls(RULES, f"rules={_short(_text(rules))}", plain(rules), _nothing, dict(rules))

    @classmethod
    def tool(
        cls, name: str, *, description: str | None = None, parameters: Mapping[str, Any] | None = None
    ) -> Self:
        """Change the definition of a function tool that the model reads.

        Args:
            name: Name of the tool.
            description: The new description; None leaves it unchanged.
            parameters: The new JSON Schema of the parameters; None leaves it unchanged.

        Raises:
            InvalidChangeError: E94, the schema is not the schema of an object.
        """
        what = f"tool {name!r}"
        if parameters is not None and (
            not isinstance(parameters, Mapping) or parameters.get("type") != "object"
        ):
            reason = 'the parameters must be a JSON Schema with "type": "object"'
            raise InvalidChangeError(change=what, reason=reason)

        def options(agent: Agent[Any]) -> dict[str, Any]:
            tools = [agent.sdk_agent.as_given(tool) for tool in agent.tools]
            place = next((at for at, tool in enumerate(tools) if tool.name == name), None)
            if place is None or not isinstance(tools[place], FunctionTool):
                hint = _hint(name, [tool.name for tool in tools])
                reason = f"the agent {agent.name!r} has no function tool of this name{hint}"
                raise InvalidChangeError(change=what, reason=reason)
            changed = copy.copy(tools[place])
            changed.description = changed.description if description is None else description
            if parameters is not None:
                changed.params_json_schema = _schema(what, parameters, is_strict=changed.strict_json_schema)
            before = tools[place]
            if (changed.description, changed.params_json_schema) == (
                before.description,
                before.params_json_schema,
            ):
                raise NoChangeError(change=what, reason="the tool has this definition already")
            tools[place] = changed
            return {"tools": tools}

        value = {"name": name, "description": description, "parameters": parameters}
        return cls(what, _short(f"tool.{name}={description or _text(parameters)}"), plain(value), options)

    @classmethod
    def middleware(cls, *middleware: Any) -> Self:
        """Add middleware outside of the agent's own.

        The change is identified by the names of the middleware's classes: to try several configurations of
        one class, give each experiment a name.
        """
        names = [getattr(one, "__name__", type(one).__name__) for one in middleware]

        def options(agent: Agent[Any]) -> dict[str, Any]:
            own = agent.given.middleware
            if all(any(one is known for known in own) for one in middleware):
                raise NoChangeError(change="middleware", reason="the agent has it already")
            return {"middleware": [*middleware, *own]}

        return cls(MIDDLEWARE, f"middleware={', '.join(names)}", names, options)


def _schema(what: str, parameters: Mapping[str, Any], *, is_strict: bool) -> dict[str, Any]:
    schema: dict[str, Any] = copied(parameters)
    if not is_strict:
        return schema
    try:
        return ensure_strict_json_schema(schema)  # the SDK does this to the schema of a strict tool
    except UserError as error:
        raise InvalidChangeError(change=what, reason=str(error)) from error


def _nothing(_agent: Agent[Any]) -> dict[str, Any]:
    return {}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidChangeError(change="prompt", reason=f"{path}: {reason}") from error


def _text(value: Any) -> str:
    return canonical(plain(value)).decode("utf-8", "replace")


def _short(text: str) -> str:
    longest = 60
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _hint(name: str, names: Iterable[str]) -> str:
    near = nearest(name, names)
    return f"; did you mean {near!r}?" if near is not None else ""
