"""pytest plugin: the processes of pytest-xdist share the work of compiling the test modules.

Rewriting the asserts of all modules takes ten seconds of processor time. All processes collect in the same
order and at the same time, so in a new clone each would do all of it. Instead, each first compiles those that
no other has compiled yet, and starts at a place of its own.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from _pytest.assertion.rewrite import (  # pytest offers no other way to compile without importing
    PYC_TAIL,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)

from tests.tiers import Selection, Times, in_repository


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Compile test modules before they are collected."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    selection = Selection.of(session.config)
    slow = Times.read().all_slow if selection.fast_only else {}
    files = sorted(file for folder in selection.folders for file in folder.rglob("test_*.py"))
    files = [file for file in files if in_repository(file) not in slow]
    start = int(worker["workerid"].removeprefix("gw")) * len(files) // worker["workercount"]
    for file in files[start:] + files[:start]:
        folder = get_cache_dir(file)
        compiled = folder / (file.name.removesuffix(".py") + PYC_TAIL)
        # What is out of date, or is not Python, is seen when it is imported.
        if not compiled.exists() and try_makedirs(folder):
            with suppress(SyntaxError, ValueError):
                origin, code = _rewrite_test(file, session.config)
                _write_pyc(session.config.stash[assertstate_key], code, origin, compiled)
