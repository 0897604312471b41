"""Shows a trace database in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.page.app import traces_app

__all__ = ["traces_app"]


# On first use: `traces open` listens, and starts the browser, before the page is imported.
__getattr__, __dir__ = lazy_names(__name__, {"kantan_agents.page.app": ("traces_app",)})
