"""Hypothesis strategies for scores whose sums and differences are exact, so that results are equal."""

from __future__ import annotations

from hypothesis import strategies as st

SCORES = st.integers(-16, 16).map(lambda eighths: eighths / 8)
"""Scores from -2 to 2 in eighths."""

PAIRS = st.lists(st.tuples(SCORES, SCORES, st.integers(0, 4)), min_size=1, max_size=30)
"""For each case the score of a, the score of b, and the conversation."""

FEW = 200
"""Resamples, where only an invariant is tested."""
