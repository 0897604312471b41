"""Assigns the tokens of a command to its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import attrs

from kantan_agents.tool_rules import read_json
from kantan_agents.tools.commands.parameters import Parameter
from kantan_agents.tools.commands.problems import CommandProblems
from kantan_agents.tools.commands.tokens import Token
from kantan_agents.tools.commands.values import shown

# Values after a flag. 1 and 0 are not: they may be the next positional value.
_SWITCH_VALUES = ("true", "false", "yes", "no", "on", "off")


class GivenText(NamedTuple):
    """A string given for a parameter; ``is_whole``: quoted or positional, not split at commas."""

    text: str
    is_whole: bool = False


@attrs.frozen(slots=False)
class ParameterNames:
    """Finds a parameter by any accepted spelling of its name."""

    parameters: Sequence[Parameter]

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        dashed = {parameter.name.replace("_", "-"): parameter for parameter in self.parameters}
        lined = {parameter.name.replace("-", "_"): parameter for parameter in self.parameters}
        return {**dashed, **lined, **{parameter.name: parameter for parameter in self.parameters}}

    def find_parameter(self, name: str) -> Parameter | None:
        """Return the parameter; ``-`` and ``_`` are equal if that is unambiguous."""
        found = self._by_name.get(name)
        return found if found is not None else self._by_name.get(name.replace("-", "_"))


class Binding:
    """A command's tokens by parameter; ``extra`` has names that the schema allows but does not define."""

    def __init__(self, names: ParameterNames, problems: CommandProblems, *, is_open: bool) -> None:
        self.given: dict[str, list[GivenText]] = {}
        self.extra: dict[str, list[GivenText]] = {}
        self.problems = problems
        self._names = names
        self._is_open = is_open
        self._unknown_options = False

    def bind(self, tokens: Sequence[Token], source: str) -> None:
        """Assign all tokens."""
        positional: list[int] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.ends_options:
                positional += range(at + 1, len(tokens))
                break
            if token.is_option:
                following = tokens[at + 1] if at + 1 < len(tokens) else None
                at += self._option(token, following)
            elif (named := self._keyword(token)) is not None:
                self._add(named, GivenText(token.value or "", token.is_quoted))
            else:
                positional.append(at)
            at += 1
        self._bind_positional(tokens, positional, source)

    def _keyword(self, token: Token) -> Parameter | None:
        if token.key is None or token.key.startswith("-"):
            return None
        return self._names.find_parameter(token.key)

    def _option(self, token: Token, following: Token | None) -> int:
        """Bind an option; return how many of the following tokens belong to it."""
        key = (token.key or token.text)[2:]
        found = self._names.find_parameter(key)
        if found is None and key.startswith("no-") and token.key is None:
            negated = self._names.find_parameter(key[3:])
            if negated is not None and negated.is_flag:
                self._add(negated, GivenText("false"))
                return 0
        if found is None and not self._is_open:
            self._unknown_options = True
            self.problems.add(f"there is no parameter {shown(key)} (position {token.start + 1})")
            return 0
        target = self.given if found is not None else self.extra
        texts = target.setdefault(found.name if found is not None else key, [])
        if token.key is not None:
            texts.append(GivenText(token.value or "", token.is_quoted))
        elif found is not None and found.is_flag:
            if following is None or following.is_quoted or following.text.lower() not in _SWITCH_VALUES:
                texts.append(GivenText("true"))
                return 0
            texts.append(GivenText(following.text))
            return 1
        elif following is None or following.is_option or following.ends_options:
            name = found.name if found is not None else key
            del target[name]
            self.problems.add(f"a value must follow --{key} (position {token.end + 1})", name)
        else:
            texts.append(GivenText(following.text, following.is_quoted and following.key is None))
            return 1
        return 0

    def _add(self, parameter: Parameter, given: GivenText) -> None:
        self.given.setdefault(parameter.name, []).append(given)

    def _bind_positional(self, tokens: Sequence[Token], positional: list[int], source: str) -> None:
        free = [parameter for parameter in self._names.parameters if parameter.name not in self.given]
        for number, parameter in enumerate(free):
            left = positional[number:]
            if not left:
                return
            is_last = number == len(free) - 1
            text = source[tokens[left[0]].start : tokens[left[-1]].end] if _are_adjacent(left) else ""
            if is_last and parameter.is_list and not _is_json_list(text):
                self.given[parameter.name] = [GivenText(tokens[at].text, is_whole=True) for at in left]
                return
            if is_last and len(left) > 1 and text and parameter.takes_rest:
                self._add(parameter, GivenText(text, is_whole=True))
                return
            self._add(parameter, GivenText(tokens[left[0]].text, is_whole=True))
        positional = positional[len(free) :]
        if positional and not self._unknown_options:
            first = tokens[positional[0]]
            count = f" and {len(positional) - 1} more" if len(positional) > 1 else ""
            where = f"{shown(first.text)} at position {first.start + 1}{count}"
            self.problems.add(f"{where}: there is no parameter for it")


def _is_json_list(text: str) -> bool:
    try:
        return text.startswith("[") and isinstance(read_json(text), list)
    except (ValueError, RecursionError):
        return False


def _are_adjacent(positional: Sequence[int]) -> bool:
    return positional[-1] - positional[0] == len(positional) - 1
