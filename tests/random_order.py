"""pytest plugin: ``--random-order SEED`` runs the tests in a random order, which a seed repeats.

Folders, the files of a folder and the tests of a file are shuffled, so that fixtures of a module or folder
are still shared.
"""

from __future__ import annotations

from random import Random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--random-order", type=int, metavar="SEED", help="run the tests in a random order")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Return the line that names the seed."""
    seed = config.getoption("--random-order")
    return None if seed is None else f"random order: {seed}"


@pytest.hookimpl(tryfirst=True)  # before pytest brings those together that share a fixture
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the tests."""
    seed = config.getoption("--random-order")
    if seed is None:
        return
    random = Random(seed)
    ranks: dict[object, float] = {}
    for item in items:  # all before sorting, so that they depend on the seed only
        for node in item.listchain():
            if node not in ranks:
                ranks[node] = random.random()
    items.sort(key=lambda item: [ranks[node] for node in item.listchain()])
