"""Sessions of pytest-xdist whose workers need not import the SDK."""

from __future__ import annotations

from pathlib import Path

from tests.programs import Preloaded


def on_two_workers(preloaded: Preloaded, folder: Path) -> list[str]:
    """Return the options that distribute a session to two processes, forked from ``preloaded``."""
    python = preloaded.interpreter(folder / "python")
    return [
        *("--dist", "load", "--tx", f"2*popen//python={python}"),
        # The library is imported before pytest could rewrite its asserts, which it does for every plugin.
        *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    ]
