"""Ready-made tools: files below a root folder, a shell, the web. Each has to be asked for."""

import sys
from types import ModuleType
from typing import Any

from agents import FunctionTool

from kantan_agents.toolkit.factory import toolkit

__all__ = ["toolkit"]


class _CallableModule(ModuleType):
    """Callable, because ``from kantan_agents import toolkit`` finds this module if it was imported before."""

    def __call__(self, *arguments: Any, **options: Any) -> list[FunctionTool]:
        return toolkit(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
