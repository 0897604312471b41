from __future__ import annotations

import inspect

import pytest

from kantan_agents.agent.running.sync_of import sync_of


async def add_async(first: int, *, second: int = 2) -> int:
    """Do the same as ``add``."""
    return first + second


@sync_of(add_async)
def add() -> None:
    """Add two numbers."""


def test_a_sync_form_has_the_signature_of_the_async_one_and_its_own_name() -> None:
    assert inspect.signature(add) == inspect.signature(add_async)
    assert (add.__name__, add.__doc__) == ("add", "Add two numbers.")
    assert not inspect.iscoroutinefunction(add)
    assert (add(1), add(1, second=5)) == (3, 6)


def test_a_wrong_argument_is_an_error_that_names_the_function_that_was_called() -> None:
    with pytest.raises(TypeError, match=r"^add\(\) got an unexpected keyword argument 'secnd'$"):
        add(1, secnd=3)
