"""E198, and for some extras E124, E130 and E140: packages that only one feature needs are missing."""

from __future__ import annotations

from kantan_agents.errors.root import KantanAgentsError


class ExtraMissingError(KantanAgentsError, ImportError):
    """A feature needs packages that an extra of this package installs, and they are missing.

    Also an ``ImportError``, so that code that does without the feature can catch it as such.

    Attributes:
        feature: What needs them.
        extra: The extra that installs them.
        reason: What cannot be imported.
    """

    code = "E198"
    is_bad_input = True
    template = (
        "An extra is missing for {feature} ({reason}): "
        'in a clone of the repository, run python -m pip install ".[{extra}]"'
    )
    feature: str
    extra: str
    reason: str


class OptimizerMissingError(ExtraMissingError):
    """The optimizer of ``improve``, the package ``gepa``, is missing, or its version does not work."""

    code = "E124"


class TelemetryMissingError(ExtraMissingError):
    """OpenTelemetry's SDK or its exporter is missing."""

    code = "E130"


class PostgresMissingError(ExtraMissingError):
    """The package ``psycopg`` is missing, or its library cannot be loaded."""

    code = "E140"
