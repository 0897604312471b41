"""Which piece of a command belongs to which parameter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import attrs

from kantan_agents.commands.parameters import Parameter
from kantan_agents.commands.problems import Problems
from kantan_agents.commands.tokens import Token
from kantan_agents.commands.values import shown
from kantan_agents.tool_rules import read_json

# Behind a switch these are what it is set to; 1 and 0 may as well be the next value.
_SAID = ("true", "false", "yes", "no", "on", "off")


class Given(NamedTuple):
    """One text that was given for a parameter.

    Attributes:
        text: The text, without quotes.
        is_whole: Whether it is one item of a list, as it is: it stood in quotes, or was given by its place.
    """

    text: str
    is_whole: bool = False


@attrs.frozen(slots=False)
class Names:
    """The parameters of a command by the names they may be called."""

    parameters: Sequence[Parameter]

    @cached_property
    def _by_name(self) -> dict[str, Parameter]:
        dashed = {parameter.name.replace("_", "-"): parameter for parameter in self.parameters}
        lined = {parameter.name.replace("-", "_"): parameter for parameter in self.parameters}
        return {**dashed, **lined, **{parameter.name: parameter for parameter in self.parameters}}

    def named(self, name: str) -> Parameter | None:
        """Return the parameter of this name; ``-`` and ``_`` are the same where that is clear."""
        found = self._by_name.get(name)
        return found if found is not None else self._by_name.get(name.replace("-", "_"))


class Binding:
    """The pieces of one command, sorted by parameter.

    Attributes:
        given: The texts for each parameter, by its name.
        extra: Texts for names that the schema leaves open.
        problems: What does not belong anywhere.
    """

    def __init__(self, names: Names, problems: Problems, *, is_open: bool) -> None:
        self.given: dict[str, list[Given]] = {}
        self.extra: dict[str, list[Given]] = {}
        self.problems = problems
        self._names = names
        self._is_open = is_open
        self._unknown_options = False

    def take(self, tokens: Sequence[Token], source: str) -> None:
        """Sort all pieces of ``source``."""
        placed: list[int] = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.ends_options:
                placed += range(at + 1, len(tokens))
                break
            if token.is_option:
                following = tokens[at + 1] if at + 1 < len(tokens) else None
                at += self._option(token, following)
            elif (named := self._keyword(token)) is not None:
                self._add(named, Given(token.value or "", token.is_quoted))
            else:
                placed.append(at)
            at += 1
        self._place(tokens, placed, source)

    def _keyword(self, token: Token) -> Parameter | None:
        if token.key is None or token.key.startswith("-"):
            return None
        return self._names.named(token.key)

    def _option(self, token: Token, following: Token | None) -> int:
        """Take an option, and return how many pieces behind it belong to it."""
        key = (token.key or token.text)[2:]
        found = self._names.named(key)
        if found is None and key.startswith("no-") and token.key is None:
            negated = self._names.named(key[3:])
            if negated is not None and negated.is_flag:
                self._add(negated, Given("false"))
                return 0
        if found is None and not self._is_open:
            self._unknown_options = True
            self.problems.add(f"there is no parameter {shown(key)} (position {token.start + 1})")
            return 0
        target = self.given if found is not None else self.extra
        texts = target.setdefault(found.name if found is not None else key, [])
        if token.key is not None:
            texts.append(Given(token.value or "", token.is_quoted))
        elif found is not None and found.is_flag:
            if following is None or following.is_quoted or following.text.lower() not in _SAID:
                texts.append(Given("true"))
                return 0
            texts.append(Given(following.text))
            return 1
        elif following is None or following.is_option or following.ends_options:
            name = found.name if found is not None else key
            del target[name]
            self.problems.add(f"a value must stand behind --{key} (position {token.end + 1})", name)
        else:
            texts.append(Given(following.text, following.is_quoted and following.key is None))
            return 1
        return 0

    def _add(self, parameter: Parameter, given: Given) -> None:
        self.given.setdefault(parameter.name, []).append(given)

    def _place(self, tokens: Sequence[Token], placed: list[int], source: str) -> None:
        """Give the pieces without a name to the parameters in their order."""
        free = [parameter for parameter in self._names.parameters if parameter.name not in self.given]
        for number, parameter in enumerate(free):
            left = placed[number:]
            if not left:
                return
            is_last = number == len(free) - 1
            text = source[tokens[left[0]].start : tokens[left[-1]].end] if _stand_together(left) else ""
            if is_last and parameter.is_list and not _is_json_list(text):
                self.given[parameter.name] = [Given(tokens[at].text, is_whole=True) for at in left]
                return
            if is_last and len(left) > 1 and text and parameter.takes_rest:
                self._add(parameter, Given(text, is_whole=True))
                return
            self._add(parameter, Given(tokens[left[0]].text, is_whole=True))
        placed = placed[len(free) :]
        if placed and not self._unknown_options:
            first = tokens[placed[0]]
            count = f" and {len(placed) - 1} more" if len(placed) > 1 else ""
            where = f"{shown(first.text)} at position {first.start + 1}{count}"
            self.problems.add(f"{where}: there is no parameter for it")


def _is_json_list(text: str) -> bool:
    try:
        return text.startswith("[") and isinstance(read_json(text), list)
    except (ValueError, RecursionError):
        return False


def _stand_together(placed: Sequence[int]) -> bool:
    return placed[-1] - placed[0] == len(placed) - 1
