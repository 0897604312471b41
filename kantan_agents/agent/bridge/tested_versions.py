"""The tested combinations of SDK, ``openai`` and kantan-llm."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from kantan_agents.support.log import get_logger

PACKAGES: Final = ("openai-agents", "openai", "kantan-llm")

TESTED: Final = (
    ("0.20", "2", "0.1.9"),
    ("0.24", "3", "0.1.9"),
)
"""Version prefixes for ``PACKAGES``, as in docs/start/install.md."""

_log = get_logger("kantan_agents")


@cache
def log_untested_versions() -> None:
    """Log an untested combination once, at the first agent, when logging is configured."""
    found = tuple(map(_version_of, PACKAGES))
    if not is_tested(found):
        named = {name.replace("-", "_"): one for name, one in zip(PACKAGES, found, strict=True)}
        tested = [" + ".join(map(" ".join, zip(PACKAGES, each, strict=True))) for each in TESTED]
        _log.warning("untested_versions", **named, tested=tested)


def is_tested(found: tuple[str, ...]) -> bool:
    """Return whether these versions match tested prefixes."""
    return any(
        all(f"{one}.".startswith(f"{begin}.") for one, begin in zip(found, each, strict=True))
        for each in TESTED
    )


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # its files are there without its metadata
        return "unknown"
