"""The compared frameworks and the requirements of their environments."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import attrs

REPOSITORY = Path(__file__).resolve().parents[2]

PLAIN = "openai_agents"
OURS = "kantan_agents_here"
CONTROL = "control"
"""A second process of the plain SDK; its difference to the first is noise."""

PUBLISHED_VERSION = "0.1.3"


@attrs.frozen
class Framework:
    """One side of the comparison.

    Attributes:
        name: Name of its module in ``benchmarks.peers.frameworks``.
        title: Its title in the table.
        requirements: Returns the requirements for pip.
        required: Whether the comparison needs it.
        files: Files on whose content the environment depends too.
    """

    name: str
    title: str
    requirements: Callable[[], tuple[str, ...]]
    required: bool = False
    files: tuple[Path, ...] = ()


def _same_as_here(*names: str) -> tuple[str, ...]:
    # Otherwise versions of the SDK would be compared.
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
