"""A feature whose extra is missing says in one line what to install."""

from __future__ import annotations

import sys
from importlib.metadata import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kantan_agents.errors import ExtraMissingError, KantanAgentsError, PostgresMissingError
from kantan_agents.support.extras import EXTRAS, extra, require_extra

DECLARED = metadata("kantan-agents")
# Names of packages that are not those of their modules.
DISTRIBUTIONS = {"sqlalchemy": "dbos", "opentelemetry.sdk": "opentelemetry-sdk"}


def required_by(name: str) -> set[str]:
    """Return the packages of an extra, those of extras in it included."""
    found = set()
    for line in DECLARED.get_all("Requires-Dist", ()):
        requirement = Requirement(line)
        if requirement.marker is None or not requirement.marker.evaluate({"extra": name}):
            continue
        if requirement.name == "kantan-agents":
            found |= {one for more in requirement.extras for one in required_by(more)}
        elif not requirement.marker.evaluate({"extra": ""}):
            found.add(canonicalize_name(requirement.name))
    return found


def test_every_extra_for_users_has_its_message_and_is_in_all() -> None:
    declared = set(DECLARED.get_all("Provides-Extra", ())) - {"all", "dev"}
    assert set(EXTRAS) == declared
    assert required_by("all") == {package for name in declared for package in required_by(name)}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_extra_installs_the_modules_that_are_looked_for(name: str) -> None:
    for module in EXTRAS[name].modules:
        assert canonicalize_name(DISTRIBUTIONS.get(module, module)) in required_by(name)
    require_extra(name)


@pytest.mark.parametrize("name", EXTRAS)
def test_a_missing_extra_is_named_with_the_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, EXTRAS[name].modules[0], None)
    with pytest.raises(ExtraMissingError) as raised:
        require_extra(name)
    assert str(raised.value).endswith(f'python -m pip install ".[{name}]"')
    assert raised.value.code == EXTRAS[name].error.code
    assert (raised.value.extra, raised.value.feature) == (name, EXTRAS[name].feature)


def test_a_library_that_cannot_be_loaded_gives_its_reason_in_one_line() -> None:
    with pytest.raises(PostgresMissingError) as raised, extra("postgres"):
        raise ImportError("no pq wrapper available.\nAttempts made: ...")
    assert raised.value.reason == "no pq wrapper available."
    assert isinstance(raised.value.__cause__, ImportError)


def test_the_error_can_be_caught_as_a_failed_import() -> None:
    with pytest.raises(ImportError), extra("lab"):
        raise ModuleNotFoundError("No module named 'numpy'")
    assert issubclass(ExtraMissingError, KantanAgentsError)


def test_other_errors_and_the_inner_extra_pass_through() -> None:
    with pytest.raises(KeyError), extra("lab"):
        raise KeyError
    with pytest.raises(ExtraMissingError) as raised, extra("page"), extra("lab"):
        raise ImportError("no numpy")
    assert raised.value.extra == "lab"
