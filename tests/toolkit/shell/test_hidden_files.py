"""A hidden file: no command in the sandbox sees what is in it. Each test runs a real bubblewrap."""

from __future__ import annotations

from pathlib import Path

import pytest

from kantan_agents.toolkit import protected
from kantan_agents.toolkit.protected import hide
from kantan_agents.toolkit.shell import shell_tools
from tests.toolkit.calls import call

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("sandbox"), pytest.mark.slow]


@pytest.mark.parametrize("place", ["data/history.jsonl", ".venv/history.jsonl", "history.jsonl"])
async def test_a_hidden_file_is_neither_seen_nor_changed(
    root: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected, "_also", {})
    monkeypatch.setattr(protected, "_hidden", {})
    file = root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("canary\n")
    hide(file, "it is private")
    ways = [
        *(f"cat {file}", f"cp {file} copy && cat copy", f"ln {file} linked && cat linked", f"rm -f {file}"),
        *(f"echo x >> {file}", f"mv {file} x", f"chmod 666 {file}", f"umount {file}"),
        f"(echo x > y; mv -f y {file})",
    ]
    bash = shell_tools(root, sandbox="required")[0]
    result = await call(bash, command="; ".join(f"{way} 2>&1 && echo DONE" for way in ways) + "; true")
    assert "DONE" not in result and "canary" not in result
    assert file.read_text() == "canary\n"
