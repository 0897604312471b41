"""The public names of the library, for the pages that are generated when the site is built.

A name is public if its package is in ``PACKAGES`` and lists it in ``__all__``. As for the site, griffe reads the code
without importing it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import griffe
from attrs import frozen
from attrs_signatures import AttrsSignatures
from sync_signatures import SyncSignatures

ROOT = Path(__file__).resolve().parents[1]

PACKAGES = (
    "kantan_agents",
    "kantan_agents.agent.stages",
    "kantan_agents.core.events",
    "kantan_agents.durable",
    "kantan_agents.errors",
    "kantan_agents.lab",
    "kantan_agents.lab.evaluation.evaluators",
    "kantan_agents.lab.evaluation.evaluators.judges",
    "kantan_agents.lab.rollout.evidence",
    "kantan_agents.middleware",
    "kantan_agents.models.protocol",
    "kantan_agents.models.protocol.translate",
    "kantan_agents.models.protocol.values",
    "kantan_agents.models.rubric",
    "kantan_agents.subagent_files",
    "kantan_agents.testing",
    "kantan_agents.testing.properties",
    "kantan_agents.testing.pytest_plugin",
    "kantan_agents.testing.strategies",
    "kantan_agents.toolkit.ask_user_question",
    "kantan_agents.toolkit.shell",
    "kantan_agents.toolkit.todo_write",
    "kantan_agents.toolkit.web",
    "kantan_agents.tools.commands",
    "kantan_agents.tools.retrieval",
    "kantan_agents.tools.skills",
    "kantan_agents.traces.capture",
    "kantan_agents.traces.telemetry.sending",
)

# Names in `__all__` that only other packages of the library need.
INTERNAL = {
    "kantan_agents.tools.commands": {
        *("HELP", "HELP_COMMAND", "PREFIX", "checked_aliases", "checked_prefix"),
        *("name_in", "shown_name", "unknown_command"),
    },
    "kantan_agents.core.events": {"Emitter", "Observers", "Outcome", "emitter_for"},
    "kantan_agents.errors": {"PREFIX"},
}

# Public names of packages without an `__all__` of their own.
MORE = {
    "kantan_agents.models.protocol.values": ("Value",),
    "kantan_agents.models.rubric": ("Rubric",),
    "kantan_agents.testing.pytest_plugin": ("replayed", "Replayed"),
    "kantan_agents.traces.telemetry.sending": ("OtelStats",),
}


@frozen
class Name:
    """A public name.

    Attributes:
        name: The name.
        package: The package that users import it from.
        path: Where griffe finds it, and its anchor in the API pages.
        documented: The class, function or value; None if another library defines it.
    """

    name: str
    package: str
    path: str
    documented: griffe.Object | None

    @property
    def home(self) -> str:
        """The module and name of its definition, the same for each package that exports it."""
        return self.path if self.documented is None else self.documented.canonical_path

    def is_of(self, package: str, modules: Sequence[str]) -> bool:
        """Whether one of these modules of a package defines it, or no modules are given."""
        return not modules or any(
            self.home.startswith(f"{package}.{module}.") for module in modules
        )

    @property
    def kind(self) -> str:
        """Whether it is a class, an exception, a function, a constant or a type."""
        if isinstance(self.documented, griffe.Class):
            bases = map(str, self.documented.bases)
            exception = any(
                re.search(r"(Error|Exception|Warning)$", base) for base in bases
            )
            return "exception" if exception else "class"
        if self.documented is not None and self.documented.is_attribute:
            return "constant" if self.name.isupper() else "type"
        return "function"

    @property
    def summary(self) -> str:
        """The first sentence of its docstring, as Markdown."""
        if self.documented is None:
            return "The function of the OpenAI Agents SDK, re-exported."
        return first_paragraph(docstring_of(self.documented))

    @property
    def inherited(self) -> list[str]:
        """The documented members that it has from bases that are not public themselves."""
        if not isinstance(self.documented, griffe.Class):
            return []
        found = []
        for name, member in self.documented.inherited_members.items():
            base = member.final_target.parent
            documented = name[0] != "_" and member.final_target.docstring is not None
            if (
                documented
                and base is not None
                and base.canonical_path not in _public_paths()
            ):
                found.append(name)
        return found


@cache
def code() -> griffe.Module:
    """Return the whole package."""
    extensions = griffe.load_extensions(AttrsSignatures, SyncSignatures)
    loaded = griffe.load(
        "kantan_agents",
        search_paths=[ROOT],
        extensions=extensions,
        resolve_aliases=True,
        resolve_external=False,
    )
    assert isinstance(loaded, griffe.Module)
    return loaded


@cache
def names(package: str) -> tuple[Name, ...]:
    """Return the public names of a package, in the order of its ``__all__``."""
    module = _at(package)
    listed = MORE.get(package) or [str(name) for name in module.exports or ()]
    return tuple(
        _name(package, name, module.members[name])
        for name in listed
        if name not in INTERNAL.get(package, ())
    )


def docstring_of(documented: griffe.Object | griffe.Alias) -> str:
    """Return a docstring as Markdown, without the numbers of the specification's rules."""
    text = documented.docstring.value if documented.docstring else ""
    return re.sub(r" \(spec [^)]*\)", "", text).replace("``", "`")


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a text in one line, for a cell of a table."""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def plain(path: str, level: int = 3) -> Iterator[str]:
    """Yield the Markdown of a class, function or value and of its documented members."""
    documented = _at(path)
    if documented.is_alias:
        documented = documented.final_target
    yield f"{'#' * level} `{path}`\n"
    if isinstance(documented, (griffe.Class, griffe.Function)):
        yield f"```python\n{_signature(documented)}\n```\n"
    yield f"{docstring_of(documented)}\n"
    if isinstance(documented, griffe.Class):
        for name, member in documented.all_members.items():
            if (
                name[0] != "_"
                and member.docstring
                and not (member.is_alias and _is_public_base(member))
            ):
                yield from plain(f"{path}.{name}", level + 1)


def _signature(documented: griffe.Class | griffe.Function) -> str:
    if isinstance(documented, griffe.Function):
        return documented.signature()
    init = documented.all_members.get("__init__")
    if init is None or (init.is_alias and _is_public_base(init)):
        return f"class {documented.name}"
    text = str((init.final_target if init.is_alias else init).signature())
    return f"class {documented.name}{text.partition('__init__')[2].removesuffix(' -> None')}"


def _is_public_base(member: griffe.Alias | griffe.Object) -> bool:
    base = member.final_target.parent if isinstance(member, griffe.Alias) else None
    return base is not None and base.canonical_path in _public_paths()


def _at(path: str) -> griffe.Object | griffe.Alias:
    rest = path.partition(".")[2]
    return code()[rest] if rest else code()


@cache
def _public_paths() -> frozenset[str]:
    documented = [name.documented for package in PACKAGES for name in names(package)]
    return frozenset(one.canonical_path for one in documented if one is not None)


def _name(package: str, name: str, member: griffe.Object | griffe.Alias) -> Name:
    path = f"{package}.{name}"
    try:
        target = member.final_target if isinstance(member, griffe.Alias) else member
    except griffe.AliasResolutionError:  # of another library
        return Name(name, package, path, None)
    if target.is_module:  # a package that is called as the function of its name
        return _name(path, name, _at(f"{path}.{name}"))
    return Name(name, package, path, target)
