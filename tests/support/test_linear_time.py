"""Finding secrets takes time in proportion to the text, whatever the text is made of."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kantan_agents.support.secrets.token_formats import FORMATS

# The module; the package has a function of the same name.
SCAN = importlib.import_module("kantan_agents.support.secrets.scan")
NAMES = importlib.import_module("kantan_agents.support.secrets.names")

PIECES = [
    *("token", "password", "pwd", "secret", "api_key", "authorization", "access_token", "--secret "),
    *("=", "= ", ":", ": ", ":=", "==", "%3D", ",", ", ", ";", "; ", "&", "*", "**", "***", "$", "<", "{"),
    *('"', "'", "`", '\\"', "\\\\\\", "\\", "\\n", "\n", " ", "\t", "(", ")", "[", "]", "-", "_", "a", "1"),
    *("Bearer ", "Basic ", "Token ", "://", "://a:", "@", "a@a", ".", "-----BEGIN ", "PRIVATE KEY-----"),
    *("-----END ", "eyJ", "eyJaaaaaaaa", "eyJaaaaaaaa.", "+49 30 ", "4111 1111 ", "10.0.", "::", "M" * 25),
    *(re.sub(r"\W", "", entry.prefix)[:8] or "0" for entry in FORMATS),
]  # fmt: skip
PREFIX = "api_key= eyJaaaaaaaa. "
"""Without anything like a secret, a text is not searched at all."""
UNITS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)


class Steps:
    """Counts the characters that are read."""

    def __init__(self) -> None:
        self.count = 0

    def text(self, text: str) -> str:
        steps = self

        class Counted(str):
            __slots__ = ()

            def __getitem__(self, place: Any) -> str:
                part = str.__getitem__(self, place)
                steps.count += len(part)
                return part

            def find(self, sought: str, *limits: Any) -> int:
                found = str.find(self, sought, *limits)
                end = found if found >= 0 else min([*limits[1:], len(self)])
                steps.count += end - (limits[0] if limits else 0)
                return found

        return Counted(text)

    def pattern(self, real: re.Pattern[str]) -> Any:
        return CountedPattern(real, self)


class CountedPattern:
    """A regular expression whose calls count the characters from where they begin to what they find."""

    def __init__(self, real: re.Pattern[str], steps: Steps) -> None:
        self._real = real
        self._steps = steps

    def search(self, text: str, start: int = 0, end: int | None = None) -> Any:
        found = self._real.search(text, start, len(text) if end is None else end)
        return self._counted(found, start, len(text) if end is None else end)

    def match(self, text: str, start: int = 0, end: int | None = None) -> Any:
        found = self._real.match(text, start, len(text) if end is None else end)
        return self._counted(found, start, start + 1)

    def fullmatch(self, text: str, start: int = 0, end: int | None = None) -> Any:
        found = self._real.fullmatch(text, start, len(text) if end is None else end)
        return self._counted(found, start, len(text) if end is None else end)

    def finditer(self, text: str, start: int = 0) -> Iterator[Any]:
        self._steps.count += len(text) - start
        return self._real.finditer(text, start)

    def _counted(self, found: Any, start: int, end: int) -> Any:
        self._steps.count += (end if found is None else found.end()) - start
        return found


@pytest.mark.slow
@given(UNITS)
@example("token=")
@example("token=a,")
@example("password=$")
@example("authorization:")
@example("pwd=")
@example("api_key=")
@example("password='")
@example("password='\\\"")
@example("token:\\n")
@example("\\")
@example("://:@")
@example("-----BEGIN PRIVATE KEY-----")
@example("-----BEGIN PRIVATE KEY-----\\\\n")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_few_characters_are_read_more_than_once(monkeypatch: pytest.MonkeyPatch, unit: str) -> None:
    steps = Steps()
    text = PREFIX + unit * (10_000 // len(unit))
    with monkeypatch.context() as patches:
        for module in (SCAN, NAMES):
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern):
                    patches.setattr(module, name, steps.pattern(value))
        SCAN.scan(steps.text(text))
        SCAN.scan(steps.text(text), whole=False)
    assert steps.count < 250 * len(text)
