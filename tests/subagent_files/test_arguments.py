"""Invalid arguments of this package are refused by name before any file is searched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kantan_agents import AgentDefinition, AgentLoader
from kantan_agents.errors import InvalidOptionError

LOADER = AgentLoader([], builtin=[AgentDefinition(name="a", description="b")])


@pytest.mark.parametrize("value", [None, 5, ["a"]])
@pytest.mark.parametrize(
    ("option", "function"),
    [
        ("text", AgentDefinition.loads),
        ("path", AgentDefinition.load),
        ("name", LOADER.get_agent_now),
        ("name", LOADER.load_agents_now().get),
        ("name", LOADER.load_agents_now().details),
        ("text", LOADER.load_agents_now().search),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(
    option: str, function: Callable[[Any], Any], value: Any
) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        function(value)
    assert (caught.value.option, repr(value) in str(caught.value)) == (option, True)


async def test_an_invalid_name_is_refused_before_any_file_is_read() -> None:
    with pytest.raises(InvalidOptionError, match="name: must be a str, not None"):
        await AgentLoader([], builtin=[]).get_agent(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directories": 5}, "directories: must be a list, not 5"),
        ({"directories": [5]}, "directories: must be a str or a Path, not 5"),
        ({"directories": [b"agents"]}, "directories: must be a str or a Path"),
        ({"cwd": 5}, "cwd: must be a str or a Path"),
        ({"home": b"home"}, "home: must be a str or a Path"),
        ({"directories": [], "builtin": 5}, "builtin: must be a list"),
        ({"directories": [], "builtin": "reviewer"}, "builtin: must be a list"),
    ],
)
def test_invalid_loader_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        AgentLoader(**options)
