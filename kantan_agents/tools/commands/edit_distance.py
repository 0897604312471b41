"""Finds the names that somebody has probably mistyped, by the Damerau-Levenshtein distance."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.support.nearest import common_letters_with


def probably_meant(typed: str, names: Sequence[str], limit: int, least: float) -> list[int]:
    """Return the places of the names that need the fewest edits, the best first.

    Args:
        typed: What was typed.
        names: The names. Equally good ones keep their order.
        limit: How many to return.
        least: The least that 1 minus the number of edits, divided by the letters of the longer text, may be.
    """
    count_common = common_letters_with(typed)
    # No distance is smaller than the letters that are not common, and those are counted much faster.
    longest = [max(len(typed), len(name)) for name in names]
    bounds = [_similarity(most, most - count_common(name)) for most, name in zip(longest, names, strict=True)]
    possible = (place for place, bound in enumerate(bounds) if bound >= least)
    likely = sorted(possible, key=lambda place: -bounds[place])
    best: list[tuple[float, int]] = []
    for place in likely:
        if len(best) == limit and bounds[place] < -best[-1][0]:
            break
        similarity = _similarity(longest[place], edit_distance(typed, names[place]))
        if similarity >= least:
            best = sorted([*best, (-similarity, place)])[:limit]
    return [place for _, place in best]


def _similarity(longest: int, edits: int) -> float:
    return 1 - edits / max(longest, 1)


def edit_distance(one: str, other: str) -> int:
    """Return how many letters must be added, removed, replaced or swapped with a neighbor.

    Letters that were swapped may be edited again: Lowrance and Wagner, "An extension of the string-to-string
    correction problem", 1975.
    """
    border = len(one) + len(other)  # no path crosses it
    rows: list[list[int]] = [[border] * (len(other) + 2), [border, *range(len(other) + 1)]]
    last_row_of: dict[str, int] = {}
    for row, letter in enumerate(one, start=1):
        line, above, last_match = [border, row], rows[row], 0
        for column, wanted in enumerate(other, start=1):
            from_row, from_column = last_row_of.get(wanted, 0), last_match
            if letter == wanted:
                last_match = column
            replaced = above[column] + (letter != wanted)
            swapped = rows[from_row][from_column] + (row - from_row) + (column - from_column) - 1
            line.append(min(replaced, line[column] + 1, above[column + 1] + 1, swapped))
        last_row_of[letter] = row
        rows.append(line)
    return rows[-1][-1]
