"""Adds the constructors of attrs classes to the API reference.

griffe, which reads the code without running it, supports only dataclasses.
"""

from __future__ import annotations

from typing import Any

import griffe


class AttrsSignatures(griffe.Extension):
    """Adds ``__init__`` to classes decorated with ``attrs.frozen`` or ``attrs.define``."""

    def on_class(self, *, cls: griffe.Class, **_kwargs: Any) -> None:
        """Add the constructor, unless the class defines one or turns it off."""
        decorators = [str(decorator.value) for decorator in cls.decorators]
        generated = [
            text
            for text in decorators
            if text.startswith(("attrs.frozen", "attrs.define"))
        ]
        if not generated or "init=False" in generated[0] or "__init__" in cls.members:
            return
        parameters = [
            griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        ]
        for member in cls.members.values():
            if isinstance(member, griffe.Attribute) and member.annotation is not None:
                parameters += _parameter(member)
        init = griffe.Function(
            "__init__",
            parameters=griffe.Parameters(*parameters),
            returns="None",
            lineno=cls.lineno,
            endlineno=cls.lineno,
        )
        cls.set_member("__init__", init)


def _parameter(attribute: griffe.Attribute) -> list[griffe.Parameter]:
    if "property" in attribute.labels or attribute.name.startswith("_"):
        return []
    default: Any = attribute.value
    if str(default).startswith("attrs.field("):
        given = {argument.name: argument.value for argument in default.arguments}
        if str(given.get("init")) == "False":
            return []
        default = given.get("default")
        if "factory" in given:
            name = str(given["factory"])
            default = f"{name}()" if name.isidentifier() else "..."
    kind = griffe.ParameterKind.positional_or_keyword
    return [
        griffe.Parameter(
            attribute.name, annotation=attribute.annotation, kind=kind, default=default
        )
    ]
