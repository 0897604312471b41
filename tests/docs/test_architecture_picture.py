"""The picture of the architecture matches the contract that import-linter checks."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from .pages import ROOT
from .scripts import load

script = load("draw_architecture")
SVG = "{http://www.w3.org/2000/svg}"


def boxes(picture: str) -> list[list[float]]:
    rects = [rect for rect in ET.fromstring(picture).iter(f"{SVG}rect") if rect.get("class") == "package"]
    return [[float(rect.attrib[name]) for name in ("x", "y", "width", "height")] for rect in rects]


def test_drawing_it_again_changes_nothing() -> None:
    message = "run `python docs/draw_architecture.py` and commit the picture"
    assert script.PICTURE.read_bytes() == script.drawing().encode(), message


def test_it_shows_every_layer_of_the_contract_from_the_outside_in() -> None:
    contract = (
        (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition(f'name = "{script.CONTRACT}"')[2]
    )
    listed = re.findall(r"kantan_agents\.(\w+)", contract.partition("\n]\n")[0])
    texts = ET.fromstring(script.drawing()).iter(f"{SVG}text")
    drawn = [str(text.text).rstrip("/").removesuffix(".py") for text in texts if text.get("class") == "name"]
    assert drawn == listed


def test_no_box_overlaps_another_or_leaves_the_picture() -> None:
    picture = script.drawing()
    width, height = map(int, re.findall(r'viewBox="0 0 (\d+) (\d+)"', picture)[0])
    found = boxes(picture)
    for number, (x, y, wide, high) in enumerate(found):
        assert x > 0
        assert x + wide < width
        assert y + high < height
        for other_x, other_y, other_wide, other_high in found[:number]:
            apart_x = x >= other_x + other_wide or other_x >= x + wide
            apart_y = y >= other_y + other_high or other_y >= y + high
            assert apart_x or apart_y


def test_a_contract_with_a_package_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f'[[tool.importlinter.contracts]]\nname = "{script.CONTRACT}"\nlayers = ["somewhere.gone"]\n',
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match=r"has somewhere\.gone, which does not exist"):
        script.layers(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.importlinter]\ncontracts = []\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no import-linter contract"):
        script.layers(tmp_path)
