"""The page: runs, prompts, comparisons and labels of a trace database in a browser, on one's own machine."""

from kantan_agents.page.app import traces_app

__all__ = ["traces_app"]
