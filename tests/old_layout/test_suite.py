"""A user's suite with the pytest plugin, the fixtures and the models for tests."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from tests.old_layout.conftest import DATA

PLUGIN = "kantan_agents.testing.pytest_plugin"


def test_a_suite_that_follows_the_guides_passes(pytester: pytest.Pytester) -> None:
    suite = DATA / "suite"
    recordings = pytester.mkdir("recordings")
    for name, source in (("order.json", "recording.json"), ("orders.jsonl", "orders.jsonl")):
        (recordings / name).write_bytes((DATA / source).read_bytes())
    pytester.makeconftest((suite / "conftest.txt").read_text(encoding="utf-8"))
    pytester.makepyfile(test_shop=(suite / "test_shop.txt").read_text(encoding="utf-8"))
    options = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    if all(one.value != PLUGIN for one in entry_points(group="pytest11")):
        options += ["-p", PLUGIN]  # a checkout that is not installed
    result = pytester.runpytest_inprocess(*options)
    result.assert_outcomes(passed=13)
    result.stdout.fnmatch_lines(["*pass rates*", "test_shop.py::test_greetings: *"])
