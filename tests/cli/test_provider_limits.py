"""What the command line says about the tools of installed packages, and about the limits of the process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_folder import agent_file
from tests.distributions import ACME, Use

VARIABLE = "KANTAN_AGENTS_TOOL_PROVIDERS"


@pytest.fixture
def _tester(project: Path) -> None:
    agent_file(project / ".claude" / "agents" / "tester.md", "tester")


@pytest.mark.usefixtures("_tester")
def test_agents_show_names_the_permitted_providers(
    kantan_agents: Any, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "providers" not in kantan_agents("agents", "show", "tester").stdout
    use(ACME)
    monkeypatch.setenv(VARIABLE, "acme,acme-mail")
    shown = kantan_agents("agents", "show", "tester").stdout
    assert "acme (acme-tools 1.2), acme-mail (acme-tools 1.2)" in shown
    data = json.loads(kantan_agents("agents", "show", "tester", "--json").stdout)
    assert data["tool_providers"] == ["acme (acme-tools 1.2)", "acme-mail (acme-tools 1.2)"]


def test_tools_list_names_the_providers_that_are_not_permitted(
    kantan_agents: Any, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "acme")
    use(ACME)
    listed = kantan_agents("tools", "list").stdout
    assert "acme-mail (acme-tools 1.2) is not permitted by KANTAN_AGENTS_TOOL_PROVIDERS" in listed
    data = json.loads(kantan_agents("tools", "list", "--json").stdout)
    assert [provider["name"] for provider in data["providers"]] == ["acme"]
    assert [provider["name"] for provider in data["not_permitted"]] == ["acme-mail", "acme-shop"]
