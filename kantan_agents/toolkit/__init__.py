"""Ready-made tools: files below a root folder, a shell, the web. None is on by default."""

from kantan_agents.support.package_names import make_callable
from kantan_agents.toolkit.factory import toolkit

__all__ = ["toolkit"]

make_callable(__name__)
