"""The JSON interface."""

from starlette.routing import BaseRoute

from kantan_agents.support.extras import require_extra

require_extra("page")

from kantan_agents.page.api import comparisons, differences, labels, one_run, prompts, runs


def routes() -> list[BaseRoute]:
    """Return the routes below ``api/``."""
    modules = (runs, one_run, differences, prompts, comparisons, labels)
    return [route for module in modules for route in module.ROUTES]


__all__ = ["routes"]
