from __future__ import annotations

import json
import re
import shutil
import subprocess
import unicodedata
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kantan_agents.page
from kantan_agents.support.invisible import ByCode, by_code, javascript, without_invisible

MODULE = Path(kantan_agents.page.__file__).parent / "static" / "lib" / "invisible.js"
FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
HINDI = "\u0915\u094d\u200d\u0937"
# Signs in front of numbers: formats by their category, but fonts draw them.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
PIECES = st.text(
    "a1\U0001f600\u2764\ufe0f\ufe0e\u20e3\u200c\u200d\u0628\r\n\t\x1b\u202e\U000e0041\u3164", max_size=12
)


def test_every_character_that_unicode_calls_a_format_or_control_is_shown_by_code() -> None:
    for number in chain(range(0x20_000), range(0xE_0000, 0xE_1000)):
        if unicodedata.category(chr(number)) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            is_kept = number in SEEN or chr(number) in "\t\n"
            assert by_code(chr(number)) == (chr(number) if is_kept else f"[U+{number:04X}]"), hex(number)


HIDING = """1B AD 34F 115F 180E 200B 200C 200D 200E 202E 2028 2060 2064 2066 3164 FE00 FE0F FEFF FFA0 FFF9
    D83D E0001 E0041 E007F E0100 E01EF"""


@pytest.mark.parametrize("code", [int(one, 16) for one in HIDING.split()], ids=hex)
def test_what_hides_in_a_text_is_shown_by_code(code: int) -> None:
    assert by_code(f"rm{chr(code)} x") == f"rm[U+{code:04X}] x"
    assert without_invisible(f"rm{chr(code)} x") == ("rm x", 1)


@pytest.mark.parametrize(
    "text", [FAMILY, PERSIAN, HINDI, "\u2764\ufe0f", "1\ufe0f\u20e3", "a\tb\n", "caf\u00e9"]
)
def test_joiners_stay_where_emoji_and_words_need_them(text: str) -> None:
    assert by_code(text) == text
    assert without_invisible(text) == (text, 0)


@pytest.mark.parametrize("text", [FAMILY, PERSIAN, HINDI, "\u2764\ufe0f", "1\ufe0f\u20e3"])
def test_where_somebody_decides_by_a_text_every_joiner_is_shown(text: str) -> None:
    assert not re.search("[\u200c\u200d\ufe0f]", by_code(text, strict=True))
    assert by_code("\ue000\u0378", strict=True) == "[U+E000][U+0378]"


@pytest.mark.parametrize(
    "text", ["a\u200db", "1\ufe0f", f"{FAMILY}\u200d", "\u2764\ufe0f\ufe0f", f"{PERSIAN}\u200c\u200c"]
)
def test_joiners_that_join_nothing_are_shown(text: str) -> None:
    assert "[U+" in by_code(text)


def test_a_line_end_of_windows_is_one() -> None:
    assert by_code("a\r\nb\rc") == "a\nb[U+000D]c"


@given(st.lists(PIECES, max_size=6))
def test_a_text_in_pieces_is_shown_like_the_whole(pieces: list[str]) -> None:
    shown = ByCode()
    assert "".join([*map(shown.feed, pieces), shown.end()]) == by_code("".join(pieces))


def test_the_page_has_the_same_table() -> None:
    assert MODULE.read_text(encoding="utf-8") == javascript(), (
        f"write what kantan_agents.support.invisible.javascript() returns to {MODULE}"
    )


@pytest.mark.slow
def test_the_page_shows_the_same_characters() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    texts = [chr(code) for code in range(0x11_000) if code not in range(0xD800, 0xE000)]
    texts += [
        f"{one}{two}{three}"
        for one in "a1\u2764\u0628"
        for two in "\u200c\u200d\ufe0f"
        for three in "a\u20e3\u2764\u0628"
    ]
    code = (
        f"import {{ INVISIBLE }} from {json.dumps(MODULE.as_uri())};"
        "const texts = JSON.parse(await new Response(process.stdin).text());"
        "console.log(JSON.stringify(texts.map((one) => one.replace(INVISIBLE, '!'))));"
    )
    finished = subprocess.run(
        [node, "--input-type=module", "-e", code],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [re.sub(r"\[U\+\w+\]", "!", by_code(one)) for one in texts]
    assert json.loads(finished.stdout) == expected
