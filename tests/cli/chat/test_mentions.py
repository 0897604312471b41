"""Files that a message names: only those of the folder, bounded, and as data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents.cli.chat.mentions import MAX_IMAGE, MAX_TEXT, read_message
from kantan_agents.errors import FileMentionError

SECRET = "nobody may read this"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files and links, beside a secret."""
    outside, inside = Path(os.path.realpath(tmp_path)) / "outside", Path(os.path.realpath(tmp_path)) / "in"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    (inside / "notes.txt").write_text("milk")
    (inside / "sub" / "more.txt").write_text("bread")
    (inside / "link").symlink_to(outside / "secret")
    (inside / "up").symlink_to(outside)
    (inside / "sub" / "loop").symlink_to("..")
    return inside


def sent(text: str, folder: Path) -> list[str]:
    """The texts of a message."""
    content = read_message(text, folder).item["content"]
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content]


def test_a_message_without_files_is_its_text(folder: Path) -> None:
    for text in ("Hello", "aiko@example.com", "@", "a @ b", "@@", "half a pair: \ud800"):
        assert sent(text, folder) == [text.replace("\ud800", "\ufffd")]


@pytest.mark.parametrize("text", ["@notes.txt", "See (or not) @notes.txt.", "@./notes.txt!", '@"notes.txt"'])
def test_a_file_follows_the_text_that_names_it(folder: Path, text: str) -> None:
    said, file = sent(text, folder)
    assert said == text
    assert file.endswith("notes.txt (4 bytes):\n\nmilk")


def test_a_file_is_sent_once(folder: Path) -> None:
    assert len(sent("@notes.txt @notes.txt @sub/more.txt", folder)) == 3


@pytest.mark.parametrize(
    "name", ["../outside/secret", "/etc/passwd", "link", "up/secret", "sub/loop/notes.txt", ".."]
)
def test_nothing_outside_and_no_link_is_read(folder: Path, name: str) -> None:
    with pytest.raises(FileMentionError) as raised:
        read_message(f"@{name}", folder)
    assert SECRET not in str(raised.value)


parts = st.sampled_from(
    ["..", ".", "up", "link", "sub", "loop", "secret", "outside", "in", "notes.txt", "", "~", "/"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(parts, min_size=1, max_size=6), st.booleans())
def test_no_path_leads_to_what_is_outside(folder: Path, names: list[str], is_quoted: bool) -> None:
    path = "/".join(names)
    text = f'@"{path}"' if is_quoted else f"@{path}"
    try:
        texts = sent(text, folder)
    except FileMentionError as error:
        texts = [str(error)]
    assert not any(SECRET in one for one in texts)


def test_a_folder_that_becomes_a_link_in_between_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kantan_agents.cli.chat import mentions

    def exchanged(root: Path, name: str) -> bool:
        if (folder / "sub").is_dir() and not (folder / "sub").is_symlink():
            (folder / "sub").rename(folder / "was")
            (folder / "sub").symlink_to(folder.parent / "outside")
        return True

    monkeypatch.setattr(mentions, "is_file_inside", exchanged)
    with pytest.raises(FileMentionError, match="links are not followed"):
        read_message('@"sub/secret"', folder)


def test_what_is_not_text_is_refused(folder: Path) -> None:
    (folder / "zero").write_bytes(b"a\0b")
    (folder / "latin").write_bytes("größer".encode("latin-1"))
    os.mkfifo(folder / "pipe")
    for name, reason in (("zero", "binary"), ("latin", "not UTF-8"), ("pipe", "not a file with text")):
        with pytest.raises(FileMentionError, match=reason):
            read_message(f"@{name}", folder)


def test_a_folder_is_named_as_a_text(folder: Path) -> None:
    message = read_message("@sub", folder)
    assert message.item["content"] == "@sub"
    assert message.notes == ("@sub is not a file here; it was sent as text",)


@given(extra=st.integers(1, 9), character=st.sampled_from(["a", "é", "語", "🎉"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_a_long_file_is_cut_at_a_character(folder: Path, extra: int, character: str) -> None:
    (folder / "long").write_text("x" * extra + character * MAX_TEXT, encoding="utf-8")
    message = read_message("@long", folder)
    text = message.item["content"][1]["text"].partition("\n\n")[2]
    assert MAX_TEXT - 4 < len(text.encode()) <= MAX_TEXT
    assert set(text[extra:]) == {character}
    assert "the first 100.0 KB of" in message.notes[0]


def test_an_image_is_known_by_its_content(folder: Path) -> None:
    webp = b"RIFF\0\0\0\0WEBPVP8 "
    for name, content, kind in (
        ("a.png", b"\x89PNG\r\n\x1a\n", "png"),
        ("a.JPG", b"\xff\xd8\xff\xe0", "jpeg"),
        ("a.gif", b"GIF89a", "gif"),
        ("a.webp", webp, "webp"),
        ("lie.png", b"GIF87a", "gif"),
    ):
        (folder / name).write_bytes(content)
        image = read_message(f"@{name}", folder).item["content"][1]
        assert image["type"] == "input_image"
        assert image["image_url"].startswith(f"data:image/{kind};base64,")
    (folder / "script.png").write_text("<svg onload=x>")
    (folder / "huge.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * MAX_IMAGE)
    for name, reason in (("script.png", "it is not a PNG"), ("huge.png", "an image may have 5.0 MB")):
        with pytest.raises(FileMentionError, match=reason):
            read_message(f"@{name}", folder)


def test_a_message_has_a_limited_number_of_files(folder: Path) -> None:
    names = [f"file{number}" for number in range(21)]
    for name in names:
        (folder / name).write_text(name)
    with pytest.raises(FileMentionError, match="at most 20 files"):
        read_message(" ".join(f"@{name}" for name in names), folder)


def test_names_of_files_cannot_harm_a_terminal(folder: Path) -> None:
    (folder / "e\x1b[31mvil").write_text("x")
    message = read_message("@e\x1b[31mvil", folder)
    assert message.notes == ("@e[U+001B][31mvil: 1 bytes",)
    assert "\x1b" not in message.item["content"][1]["text"]
