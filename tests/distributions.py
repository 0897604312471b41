"""Distributions with tool providers: real wheels, each installed by pip into its own directory.

The directories are not environments. A test that needs a distribution puts its directory on the path.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import attrs

_CLASS = """
    class Provider:
        def list_tools(self): return TOOLS
        def get_tool_rules(self): return RULES
"""

_ACME = """
    import os
    from kantan_agents import ToolRulesMode, rule_parameter

    if "ACME_IMPORTED" in os.environ:
        with open(os.environ["ACME_IMPORTED"], "a") as file:
            file.write("imported\\n")

    def search(query: str, limit: int = 10) -> str:
        '''Search the catalogue.

        Slowly.
        '''
        return f"acme found {query}"

    @rule_parameter("address")
    def send(text: str, address: str) -> str:
        '''Send a mail.'''
        return f"acme sent {text} to {address}"

    def refund(order: str) -> str:
        '''Refund an order.'''
        return f"acme refunded {order}"

    class Catalogue:
        def list_tools(self): return [search]
        def get_tool_rules(self):
            params = {"search": {"query": {"minLength": 2, "maxLength": 20}}}
            return {"allow": ["search", "send"], "params": params}

    class Shop:
        def list_tools(self): return (tool for tool in [refund])
        def get_tool_rules(self): return {"deny": ["refund"]}

    class Mail:
        def __init__(self, sender): self.sender = sender
        def list_tools(self): return [send]
        def get_tool_rules(self): return ToolRulesMode.RECOMMENDED

    catalogue = Catalogue()

    def mail():
        return Mail("shop@example.com")
"""

_ODD = """
    import sys
    from types import SimpleNamespace
    from agents import function_tool
    from kantan_agents import Agent, rule_parameter

    def provider(tools=(), rules=None):
        return SimpleNamespace(list_tools=lambda: tools, get_tool_rules=lambda: rules)

    @rule_parameter("colour")
    def paint(text: str) -> str:
        return text

    def nested(): return provider([Agent("nested", "x").sdk_agent.as_tool("ask", "Ask.")])
    def leaving(): sys.exit("no licence")
    nameless = provider([object()])
    misdeclared = provider([paint])
    uncountable = provider(5)
    bare = provider()

    class Demanding:
        def __init__(self, wish): pass
"""

_LOUD = """
    import sys
    from agents import function_tool

    print("\\x1b[2Jloud on stdout"); print("loud on stderr", file=sys.stderr)

    def shout(text: str) -> str: return text

    DESCRIPTION = "[bold]Shouts[/bold] \\x1b[31mred\\x9b2J\\nsecond line"
    TOOLS = [function_tool(shout, name_override="shout\\x1b]0;owned\\x07", description_override=DESCRIPTION)]
    RULES = {"deny": ["\\x1b[2J\\x9b2J"]}
"""


@attrs.frozen
class Distribution:
    """The contents of a wheel.

    Attributes:
        name: Name of the distribution.
        version: Its version.
        entry_points: The entry points of the group ``kantan_agents.tools``, from name to object.
        code: Source of the only module, named like the distribution with underscores.
    """

    name: str
    version: str
    entry_points: Mapping[str, str]
    code: str

    @property
    def module(self) -> str:
        """Name of its module."""
        return self.name.replace("-", "_")

    def wheel(self, directory: Path) -> Path:
        """Write the wheel as a build backend would, and return its path."""
        info = f"{self.module}-{self.version}.dist-info"
        declared = "".join(f"{name} = {self.module}{value}\n" for name, value in self.entry_points.items())
        files = {
            f"{self.module}.py": self.code,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": f"[kantan_agents.tools]\n{declared}",
        }
        files[f"{info}/RECORD"] = "".join(_record(name, text) for name, text in files.items()) + (
            f"{info}/RECORD,,\n"
        )
        path = directory / f"{self.module}-{self.version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return path


def _record(name: str, text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text.encode())}\n"


def _of(name: str, version: str, entry_points: Mapping[str, str], code: str) -> Distribution:
    return Distribution(name, version, entry_points, dedent(code))


ACME = _of("acme-tools", "1.2", {"acme": ":catalogue", "acme-shop": ":Shop", "acme-mail": ":mail"}, _ACME)
RIVAL = _of(
    "rival-tools",
    "2.0",
    {"rival": ":Provider"},
    "def search(query: str) -> str:\n"
    "    return f'rival found {query}'\n"
    "TOOLS = [search]\n"
    "RULES = {'params': {'search': {'query': {'maxLength': 5}}}}\n" + dedent(_CLASS),
)
TWIN = attrs.evolve(RIVAL, name="twin-tools", entry_points={"acme": ":Provider"})
HALF = _of(
    "half-tools", "0.1", {"half": ":Provider"}, "class Provider:\n    def list_tools(self): return []\n"
)
TORN = _of("torn-tools", "0.2", {"torn": ":Provider"}, "import luck\n")
WRONG = _of(
    "wrong-tools",
    "0.3",
    {"wrong": ":Provider"},
    "TOOLS = []\nRULES = {'alow': [], 'deny': 'rm'}\n" + dedent(_CLASS),
)
UNRULY = _of("unruly-tools", "0.4", {"unruly": ":Provider"}, "TOOLS = []\nRULES = []\n" + dedent(_CLASS))
ODD = _of(
    "odd-tools",
    "0.5",
    {
        name: f":{name}"
        for name in (
            "nested",
            "leaving",
            "nameless",
            "misdeclared",
            "uncountable",
            "Demanding",
            "missing",
            "bare",
        )
    },
    _ODD,
)
LOUD = _of("loud-tools", "1.0", {"loud": ":Provider"}, dedent(_LOUD) + dedent(_CLASS))


def pip_install(distribution: Distribution, target: Path) -> Path:
    """Install a distribution into ``target`` with pip, without the network, and return ``target``."""
    target.mkdir(parents=True, exist_ok=True)
    wheel = distribution.wheel(target.parent)
    pip = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-compile", "--upgrade", "--target", str(target)]
    subprocess.run([*pip, *options, str(wheel)], check=True, capture_output=True)
    return target


class Installed:
    """Installs each distribution when it is first needed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._installed: dict[str, Path] = {}

    def path(self, distribution: Distribution) -> Path:
        """Return the directory to put on the path."""
        if distribution.name not in self._installed:
            target = self._root / distribution.name / "site"
            self._installed[distribution.name] = pip_install(distribution, target)
        return self._installed[distribution.name]

    def environment(self, *distributions: Distribution) -> dict[str, str]:
        """Return the environment variables of a process in which these are installed."""
        inherited = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
        paths = [str(self.path(distribution)) for distribution in distributions]
        return {**os.environ, "PYTHONPATH": os.pathsep.join([*paths, *inherited])}


Use = Callable[..., None]
"""Type of the fixture ``use``: ``use(ACME, RIVAL)`` installs them until the end of the test."""
