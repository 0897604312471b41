"""Asks of recorded tool calls: what would other tool rules have decided?"""

from kantan_agents.lab.rule_changes.values import Flip, FlipCounts, IncompleteTrace, UnjudgedCall, WhatIf
from kantan_agents.lab.rule_changes.what_if import what_if

__all__ = ["Flip", "FlipCounts", "IncompleteTrace", "UnjudgedCall", "WhatIf", "what_if"]
