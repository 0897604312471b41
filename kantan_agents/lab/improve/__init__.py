"""Searches for better versions of a prompt, based on recorded runs and their mistakes."""

from kantan_agents.support.extras import require_extra

require_extra("lab")

from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.improvement import Improvement, ImproveProgress
from kantan_agents.lab.improve.improving import improve, improve_async
from kantan_agents.lab.improve.openings import Opening
from kantan_agents.support.package_names import make_callable

__all__ = [
    "Candidate",
    "ImproveProgress",
    "Improvement",
    "Opening",
    "improve",
    "improve_async",
]

make_callable(__name__)
