"""docs/check_words.py finds the words it lists wherever a reader meets them, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from .scripts import load

check_words = load("check_words")

# One sentence for each expression of the list, and the words that are found in it.
SENTENCES = {
    "Each room has one door.": ["room"],
    "The observer is told, and tells no one.": ["told", "tells"],
    "The hook hears it.": ["hears"],
    "It runs on the way in and on the way out.": ["the way in", "the way out"],
    "A shelf of tools.": ["shelf"],
    "Merging has one law.": ["law"],
    "A cure for it.": ["cure"],
    "It mends the text.": ["mends"],
    "Judging a reply.": ["Judging"],
    "A provider of your own.": ["of your own"],
    "The value is no str.": ["is no str"],
    "The tool is none.": ["is none"],
    "It is sent as it stands.": ["stands"],
    "The sum comes to ten.": ["comes to"],
    "It goes by this name.": ["goes by"],
    "What the reader makes of a file.": ["makes of"],
    "Whoever calls it.": ["Whoever"],
    "The file is put right.": ["put right"],
}

# The same for the words that only pages and docstrings of read packages avoid.
IN_PAGES = {
    "It returns what was stored.": ["what was"],
    "Pass a text, or several texts.": ["a text", "texts"],
    "It begins here, at the beginning.": ["begins", "beginning"],
    "The rules refuse a call, which is a refusal.": ["refuse", "refusal"],
    "The message says why.": ["says"],
    "The names are those of the file, and that of the user.": ["that of", "those of"],
    "The value is kept.": ["kept"],
    "Nobody reads it, and people ask somebody.": ["Nobody", "people", "somebody"],
    "The place where it is.": ["place"],
    "A unit gets one arm.": ["unit"],
    "The newest run is first.": ["newest"],
    "Leave out the rest.": ["Leave out"],
    "An error ends the run.": ["ends the run"],
    "It goes on.": ["goes on"],
    "Runs are made by workers.": ["Runs are made"],
    "A hand-off to another agent.": ["hand-off"],
    "Both start at once.": ["at once"],
    "The file stays as it is.": ["as it is"],
    "The sealed cases.": ["sealed"],
    "A process of its own.": ["of its own"],
    "Draw a sample.": ["Draw"],
    "The model is asked again.": ["asked"],
    "A file beside the database.": ["beside"],
    "The figures are stored.": ["figures"],
    "A marker without a value.": ["marker"],
    "Also if it fails.": ["Also if"],
    "The contents of the file.": ["contents"],
    "It is summarised and optimised.": ["optimised", "summarised"],
    "Its behaviour is labelled.": ["behaviour", "labelled"],
}
ALLOWED_IN_PAGES = [
    "What is a run? It takes place in a worker, in place of a script.",
    "A unit test, a sampling unit and a work unit.",
    "He said so, and keeps it in a text file.",
]

ALLOWED = [
    "The letter stands for a word, a stand-in for a model stands alone.",
    "There is no key, and there is none in the file.",
    "The option is no longer read, and is no larger than before.",
    "Returns True if the value is None.",
    "A lamp for the living room leaves room for another.",
    "The way in which it works, when it comes to speed.",
    "The stream comes to an end.",
    "A key made of letters.",
    "A lawful, hearsay-free, roomy standard.",
]

BANNED = pytest.mark.parametrize(("sentence", "words"), SENTENCES.items())


def words_of(found: object) -> list[str]:
    return [words for _, words, _ in sorted(found)]  # type: ignore[call-overload]


def test_every_expression_has_a_sentence() -> None:
    for pattern, _ in check_words._PROSE:
        assert any(pattern.search(sentence) for sentence in SENTENCES), pattern


def test_every_expression_for_pages_has_a_sentence_that_other_code_may_have() -> None:
    for pattern, _ in check_words._IN_PAGES:
        assert any(pattern.search(sentence) for sentence in IN_PAGES), pattern
    for sentence, words in IN_PAGES.items():
        assert words_of(check_words.in_markdown(sentence)) == sorted(words)
        assert words_of(check_words.in_python(f"# {sentence}\n", with_texts=True)) == []
    for sentence in ALLOWED_IN_PAGES:
        assert words_of(check_words.in_markdown(sentence)) == []


def test_docstrings_and_comments_of_a_read_package_have_the_words_of_pages() -> None:
    code = '"""It goes on.\n\n    place: A name.\n"""\n# Nobody reads it.\nX = "as it is"\n'
    found = check_words.in_python(code, with_texts=True, is_read=True)
    assert words_of(found) == ["goes on", "Nobody"]


@BANNED
def test_a_word_is_found_in_a_page(sentence: str, words: list[str]) -> None:
    page = f"# Title\n\nFirst line.\n{sentence}\n"
    assert min(check_words.in_markdown(page))[0] == 4
    assert words_of(check_words.in_markdown(page)) == sorted(words)


@BANNED
@pytest.mark.parametrize(
    "code",
    [
        '"""Summary.\n\n{}\n"""\n',
        'def f():\n    """Summary.\n\n    {}\n    """\n',
        'X = 1\n"""{}"""\n',
        "X = 1  # {}\n",
        "# A comment before,\n# {}\nX = 1\n",
    ],
    ids=["module", "function", "attribute", "comment", "long comment"],
)
def test_a_word_is_found_in_python(code: str, sentence: str, words: list[str]) -> None:
    assert words_of(check_words.in_python(code.format(sentence), with_texts=False)) == sorted(words)


@BANNED
def test_a_word_is_found_in_a_text_of_the_package_only(sentence: str, words: list[str]) -> None:
    code = f"print({sentence!r})\n"
    assert words_of(check_words.in_python(code, with_texts=True)) == sorted(words)
    assert words_of(check_words.in_python(code, with_texts=False)) == []


def test_words_are_found_across_lines() -> None:
    assert words_of(check_words.in_markdown("It goes\nby a name that is no\nword.")) == [
        "goes by",
        "is no word",
    ]
    code = "# It goes\n# by a name.\nX = 1\n\n# It is no\n# word.\n"
    assert sorted(check_words.in_python(code, with_texts=False)) == [
        (1, "goes by", check_words.PROSE["goes by|go by"]),
        (5, "is no word", check_words.PROSE[r"is no \w+"]),
    ]


@pytest.mark.parametrize(
    "name", ["told", "_told", "telling_hooks", "test_tool_laws", "ROOM", "MENDED", "is_heard", "shelf"]
)
def test_a_name_is_found(name: str) -> None:
    for code in (f"{name} = 1\n", f"def {name}(): pass\n", f"def f({name}): pass\n", f"f({name}=1)\n"):
        assert words_of(check_words.in_python(code, with_texts=False)) == [name]


@pytest.mark.parametrize("name", ["standard", "lawful", "headroom", "recommend", "sheltered"])
def test_a_name_with_the_letters_inside_is_not_found(name: str) -> None:
    assert words_of(check_words.in_python(f"{name} = 1\n", with_texts=False)) == []


@pytest.mark.parametrize("sentence", ALLOWED)
def test_plain_english_passes(sentence: str) -> None:
    assert words_of(check_words.in_markdown(sentence)) == []
    assert words_of(check_words.in_markdown(sentence.replace(" ", "\n"))) == []
    assert words_of(check_words.in_python(f'"""{sentence}"""', with_texts=False)) == []


@pytest.mark.parametrize(
    "page",
    [
        "Read `the law` and ``whoever()``.",
        "```python\ntold = room  # stands\n```\n",
        "1. A list:\n\n    ```text\n    whoever\n    ```\n",
        "See [the page](https://example.com/laws/room.md) or https://example.com/shelf.",
        "<!-- whoever reads this -->",
    ],
)
def test_code_links_and_comments_of_a_page_are_skipped(page: str) -> None:
    assert words_of(check_words.in_markdown(page)) == []
    assert words_of(check_words.in_markdown(f"{page}\n\nWhoever.")) == ["Whoever"]


def test_a_file_with_a_find_fails_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test_laws.py"
    path.write_text("told = 1\n", encoding="utf-8")
    assert check_words.main([str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{path}:1: 'test_laws.py'; use: {check_words.NAME_ADVICE}",
        f"{path}:1: 'told'; use: {check_words.NAME_ADVICE}",
        "2 words to replace",
    ]


def test_a_clean_file_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.md"
    path.write_text("Run it.\n", encoding="utf-8")
    assert check_words.main([str(path)]) == 0
    assert capsys.readouterr().out == "no word to replace\n"


def test_every_tracked_page_and_module_is_read() -> None:
    tracked = {path.relative_to(check_words.ROOT).as_posix() for path in check_words.tracked()}
    assert {"README.md", "docs/index.md", "kantan_agents/__init__.py", "tests/docs/pages.py"} <= tracked
    assert not {"docs/check_words.py", "tests/docs/test_check_words.py"} & tracked
