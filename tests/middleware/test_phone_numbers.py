"""Which spellings of phone numbers ``Redact`` finds, with the numbers of the ``phonenumbers`` package."""

from __future__ import annotations

import re
from collections.abc import Iterator

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat, PhoneNumberType

from kantan_agents.middleware import Redact
from tests.docs.pages import ROOT, Page, code_spans

# Fifty countries.
COUNTRIES = [
    country
    for region in (
        "US CA MX BR AR CL CO",
        "GB IE DE AT CH FR BE NL IT ES PT SE NO DK FI PL CZ HU GR TR RU UA",
        "IL AE IN CN JP KR TW HK SG TH ID MY PH VN SA AU NZ",
        "ZA EG NG KE",
    )
    for country in region.split()
]
KINDS = (PhoneNumberType.FIXED_LINE, PhoneNumberType.MOBILE, PhoneNumberType.TOLL_FREE)

# The documented name of each spelling, with the number of a mobile phone in France.
SPELLINGS = {
    "international": "+33 6 12 34 56 78",
    "with hyphens": "+33-6-12-34-56-78",
    "with dots": "+33.6.12.34.56.78",
    "without blanks": "+33612345678",
    "with `(0)`": "+33 (0)6 12 34 56 78",
    "behind `00`": "0033 6 12 34 56 78",
    "behind `00` and a blank": "00 33 6 12 34 56 78",
    "behind `00`, without blanks": "0033612345678",
    "behind `011`": "011 33 6 12 34 56 78",
    "national, with a leading 0": "06 12 34 56 78",
    "the same without blanks": "0612345678",
    "national, otherwise": "(201) 555-0123",
    "the same, without blanks": "2015550123",
}
# The rows of the documented table, with the spellings that they count.
ROWS = {
    "with a country code": [*SPELLINGS][:9],
    "national, with a leading 0": ["national, with a leading 0", "the same without blanks"],
    "national, otherwise": ["national, otherwise"],
    "the same, without blanks": ["the same, without blanks"],
}
RULE = Redact(rules="phone")


def spellings(country: str) -> Iterator[tuple[str, str]]:
    """Yield the spellings of the numbers of a country, each with its name."""
    for kind in KINDS:
        number = phonenumbers.example_number_for_type(country, kind)
        if number is None:
            continue
        code = str(number.country_code)
        international = phonenumbers.format_number(number, PhoneNumberFormat.INTERNATIONAL)
        national = phonenumbers.format_number(number, PhoneNumberFormat.NATIONAL)
        rest = international.removeprefix(f"+{code} ")
        digits = re.sub(r"\D", "", international)
        trunk = re.sub(r"\D", "", national)
        yield "international", international
        yield "with hyphens", international.replace(" ", "-")
        yield "with dots", re.sub("[ -]", ".", international)
        yield "without blanks", f"+{digits}"
        if code != "1":
            yield "with `(0)`", f"+{code} (0){rest}"
        yield "behind `00`", f"00{code} {rest}"
        yield "behind `00` and a blank", f"00 {code} {rest}"
        yield "behind `00`, without blanks", f"00{digits}"
        yield "behind `011`", f"011 {code} {rest}"
        yield ("national, with a leading 0" if trunk.startswith("0") else "national, otherwise"), national
        yield ("the same without blanks" if trunk.startswith("0") else "the same, without blanks"), trunk


def is_found(text: str) -> bool:
    return bool(RULE.masked(f"Call {text} now.") == "Call [phone] now.")


def rates() -> dict[str, str]:
    counts: dict[str, list[bool]] = {}
    row_of = {spelling: row for row, named in ROWS.items() for spelling in named}
    for country in COUNTRIES:
        for name, text in spellings(country):
            counts.setdefault(row_of[name], []).append(is_found(text))
    return {row: f"{sum(found)} of {len(found)}" for row, found in counts.items()}


@pytest.mark.slow
def test_the_page_lists_the_rates_at_which_phone_numbers_are_found() -> None:
    section = Page(ROOT / "docs" / "reference" / "middleware" / "redact.md").section("Phone numbers")
    table = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    assert {name: rate for name, _, rate in table} == rates()
    for name, examples, _ in table:
        assert set(code_spans(examples)) <= {SPELLINGS[spelling] for spelling in ROWS[name]}


@pytest.mark.parametrize("country", COUNTRIES)
def test_every_number_with_a_country_code_is_found(country: str) -> None:
    for name, text in spellings(country):
        if text.startswith(("+", "00", "011 ")):
            assert is_found(text), (name, text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "0044 20 7946 0958",
            "0033 1 23 45 67 89",
            "001 212 555 0123",
            "00 81 3 1234 5678",
            "0049 30 1234567",
        ),
        *(
            "0049-30-1234567",
            "00493012345678",
            "011 44 20 7946 0958",
            "0049 151 23456789",
            "0086 138 1234 5678",
        ),
        *("+49 (0)30 1234567", "0 30 1234567", "030 1234567", "030 12345678", "0151 23456789", "+4930123456"),
        *("+39 02 1234 5678", "+49 0151 23456789", "0 801 23 45 67"),
        *("(0044) 20 7946 0958", "(0049) 30 1234567", "010 44 20 7946 0958", "010 1234 5678"),
        *("030/1234567", "030 / 123 45 67", "(0151)/23456789", "+49 30/1234567", "0049/30/1234567"),
        *("1800 300 400", "1300-300-400", "1-800-123-456", "1800 123 4567", "1800 1 234 5678"),
    ],
)
def test_a_number_is_found_completely(text: str) -> None:
    assert is_found(text)


@pytest.mark.parametrize(
    "numbers",
    [
        ("030 123456", "030 654321"),
        ("0033 1 23 45 67 89", "0033 1 23 45 67 80"),
        ("+81 3 1234 5678", "+81 3 1234 5679"),
        ("03-1234-5678", "090-1111-2222"),
        ("0044.20.7946.0958", "0044.20.7946.0959"),
        ("0044 20 7946 0958", "0044 20 7946 0959"),
        ("020 7946 0958", "020 7946 0959"),
        ("+44 20 7946 0958", "020 7946 0959"),
    ],
)
def test_each_of_two_numbers_with_a_blank_between_them_is_found(numbers: tuple[str, str]) -> None:
    assert RULE.masked(" ".join(numbers)) == "[phone] [phone]"


@pytest.mark.parametrize(
    "text",
    [
        "01234567-8901-4234-8567-123456789012",
        "00000000-0000-0000-0000-000000000000",
        "6040bc3b-0734-4324-8267-657a3ba6d3f2",
        "ISBN 0-306-40615-2",
        *("ISBN 0306406152", "ISBN-10: 0306406152", "ISBN 2-07-036822-8", "isbn=0 306 40615 2"),
        *("978-2-07-036822-8", "978 0 306 40615 7", "978-0-00-713310-6", "ISBN-13: 979-10-90636-07-1"),
        *("EAN 0036000291452", '"ean": "0036000291452"', "UPC-A: 036000291452", "GTIN-14 00036000291452"),
        *("DE89 3704 0044 0532 0130 00", "CH93 0076 2011 6238 5295 7", "IBAN: NL91 ABNA 0417 1643 00."),
        *("01/02/2026 10:30", "001/202601", "/030/1234567", "030/1234567/x"),
        "01-02-2026 10:30",
        "0 1 2 3 4 5 6 7 8 9",
        "0 10 20 30 40 50",
        "0 100 200 300 400",
        "00:11:22:33:44:55",
        "0000",
        "007",
    ],
)
def test_other_numbers_are_not_phone_numbers(text: str) -> None:
    assert RULE.masked(text) == text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ISBN 0306406152 030 12345678", "ISBN 0306406152 [phone]"),
        ("978-2-07-036822-8 030 12345678", "978-2-07-036822-8 [phone]"),
        ("ISBN: +49 30 1234567", "ISBN: [phone]"),
        ("978 030 1234567", "978 [phone]"),
        ("DE89 3704 0044 0532 0130 00 030 1234567", "DE89 3704 0044 0532 0130 00 [phone]"),
        ("DE88 3704 0044 0532 0130 00", "DE88 3704 [phone]"),  # the check digits are wrong
    ],
)
def test_a_phone_number_beside_that_of_a_book_or_an_account_is_found(text: str, masked: str) -> None:
    assert RULE.masked(text) == masked
