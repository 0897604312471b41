"""Overlap of two strings, by words or by n-grams of characters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

_NO_SPACES: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+")
_TOKEN: Final = re.compile(r"(?<!\w)-?\d+(?:[.,:/]\d+)*|[^\W_]+|[^\w\s]")
_LONGEST_GRAM: Final = 6
_BETA_SQUARED: Final = 4


def normalized_tokens(text: str) -> list[str]:
    """Return words without differences of form: case, spaces, punctuation, compatibility characters.

    Signs, separators inside numbers, symbols and ``%`` stay, because ``-5 %`` is not ``5``.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2212", "-")
    found = _TOKEN.findall(folded)
    return [one for one in found if len(one) > 1 or one == "%" or unicodedata.category(one)[0] != "P"]


def rouge_l(output: str, reference: str) -> float:
    """Return ROUGE-L: the F1 of the longest common subsequence of words, from 0 to 1.

    Lin (2004), "ROUGE: A Package for Automatic Evaluation of Summaries", section 3. For ASCII it equals
    ``rougeL`` of the package ``rouge-score`` without stemming. Characters of Chinese and Japanese are words.
    """
    one, other = _words(output), _words(reference)
    if not one or not other:
        return float(output == reference)
    common = _longest_common(one, other)
    return 2 * common / (len(one) + len(other))


def chrf(output: str, reference: str) -> float:
    """Return chrF2: the F score of n-grams of 1 to 6 characters, from 0 to 1; recall counts twice.

    Popovic (2015), "chrF: character n-gram F-score for automatic MT evaluation". It equals ``sentence_chrf``
    of the package ``sacrebleu`` divided by 100.
    """
    one, other = "".join(output.split()), "".join(reference.split())
    if not one or not other:
        return float(one == other)
    longest = min(_LONGEST_GRAM, len(one), len(other))
    precision = recall = 0.0
    for n in range(1, longest + 1):
        of_output, of_reference = _grams(one, n), _grams(other, n)
        common = (of_output & of_reference).total()
        precision += common / of_output.total() / longest
        recall += common / of_reference.total() / longest
    if not precision:
        return 0.0
    return (1 + _BETA_SQUARED) * precision * recall / (_BETA_SQUARED * precision + recall)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(text: str, n: int) -> Counter[str]:
    return Counter(text[start : start + n] for start in range(len(text) - n + 1))


def _longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """A bit of ``row`` is 0 where the subsequence grows.

    Hyyro (2004), "Bit-parallel LCS-length computation revisited". 100,000 words each take about a second.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    everything = row = (1 << len(one)) - 1
    for word in other:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & everything
    return len(one) - row.bit_count()
