"""The frameworks that are compared, and what their environments are made of."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import attrs

REPOSITORY = Path(__file__).resolve().parents[2]

PLAIN = "openai_agents"
OURS = "kantan_agents_here"
CONTROL = "control"
"""A second process of the plain SDK; what it differs by is noise."""

PUBLISHED_VERSION = "0.1.3"


@attrs.frozen
class Framework:
    """One side.

    Attributes:
        name: Its module in ``benchmarks.peers.frameworks``.
        title: What stands in the table.
        requirements: Returns what pip installs.
        required: Whether there is no comparison without it.
        files: Files whose content decides about the environment as well.
    """

    name: str
    title: str
    requirements: Callable[[], tuple[str, ...]]
    required: bool = False
    files: tuple[Path, ...] = ()


def _same_as_here(*names: str) -> tuple[str, ...]:
    # Or versions of the SDK would be compared.
    return tuple(f"{name}=={version(name)}" for name in names)


def _plain() -> tuple[str, ...]:
    return _same_as_here("openai-agents", "openai", "pydantic", "kantan-llm")


def _ours() -> tuple[str, ...]:
    return ("--editable", str(REPOSITORY), *_plain())


def _published() -> tuple[str, ...]:
    return (f"kantan-agents=={PUBLISHED_VERSION}", *_plain())


FRAMEWORKS = (
    Framework(PLAIN, "plain SDK", _plain, required=True),
    Framework(OURS, "kantan_agents", _ours, required=True, files=(REPOSITORY / "pyproject.toml",)),
    Framework("kantan_agents_published", f"kantan-agents {PUBLISHED_VERSION}", _published),
    # The modules are written for these major versions.
    Framework("pydantic_ai", "pydantic-ai", lambda: ("pydantic-ai-slim[openai]>=2,<3",)),
    Framework(
        "langgraph", "langgraph", lambda: ("langchain>=1,<2", "langgraph>=1,<2", "langchain-openai>=1,<2")
    ),
)

PEERS = tuple(framework.name for framework in FRAMEWORKS if not framework.required)
