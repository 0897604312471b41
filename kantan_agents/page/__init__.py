"""Shows a trace database in a browser, on one's own machine: runs, prompts, comparisons and labels."""

from kantan_agents.page.app import traces_app

__all__ = ["traces_app"]
