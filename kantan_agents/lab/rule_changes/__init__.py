"""Re-decides recorded tool calls with other tool rules."""

from kantan_agents.lab.rule_changes.values import Flip, FlipCounts, IncompleteTrace, UnjudgedCall, WhatIf
from kantan_agents.lab.rule_changes.what_if import what_if

__all__ = ["Flip", "FlipCounts", "IncompleteTrace", "UnjudgedCall", "WhatIf", "what_if"]
