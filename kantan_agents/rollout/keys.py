"""Keys of the trace metadata of runs whose arm a rollout has chosen."""

from __future__ import annotations

from typing import Final

ROLLOUT: Final = "rollout"
"""Name of the rollout."""
ARM: Final = "arm"
"""Name of the arm."""
ARM_SHARE: Final = "arm_share"
"""The probability of this arm at that moment, 0 to 1; missing if the arm was not drawn."""
ROLLOUT_UNIT: Final = "rollout_unit"
"""What identifies the unit without naming it: 16 hexadecimal digits."""
NOT_DRAWN: Final = "rollout_not_drawn"
"""Why the arm was not drawn."""
