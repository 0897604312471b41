"""Shows a trace database in a browser, on one's own machine: runs, prompts, comparisons and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kantan_agents.support.extras import require_extra

if TYPE_CHECKING:
    from kantan_agents.page.app import traces_app

__all__ = ["traces_app"]


def __getattr__(name: str) -> Any:
    # On first use: `traces open` listens, and starts the browser, before the page is imported.
    if name == "traces_app":
        require_extra("page")
        from kantan_agents.page.app import traces_app

        return traces_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
