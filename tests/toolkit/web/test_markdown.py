from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.toolkit.web.markdown import markdown_of

PAGE = """<!doctype html><html><head><title>Prices &amp; plans</title><style>p {color: red}</style>
<script>steal("</p>")</script></head><body>
<h1>Plans</h1><p>Choose <b>one</b> of <a href="/plans?a=1&amp;b=2">these
plans</a>.</p>
<ul><li>Small<ul><li>cheap</li></ul></li><li>Large</li></ul>
<table><tr><th>Plan<th>Price<tr><td>Small<td>1 &euro;</table>
<pre>
first
  second
</pre>
Use <code>go &lt;now&gt;</code><br>or not. <img src="x.png" alt="A cat"> <a href="javascript:x()">run</a>
<template>hidden</template></body></html>"""


def test_a_page_becomes_markdown() -> None:
    assert (
        markdown_of(PAGE, "https://example.com/a/")[0]
        == """# Prices & plans

# Plans

Choose one of [these plans](https://example.com/plans?a=1&b=2).

- Small
  - cheap

- Large

Plan | Price
Small | 1 €

```

first
  second

```

Use `go <now>`
or not. [image: A cat] run"""
    )


@given(st.text(alphabet="<>/abp!-\"'= &;#xuli", max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(markdown_of(text, "https://example.com/")[0], str)


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a ",
        "<!",
        "<!--",
        '<a a="',
        "&",
        "<a href=x>y",
        "<ul><li>",
        "<pre>",
        "</",
        "<td>a",
        "<svg>",
        "<?",
        "<script>",
        "<script a='",
        "<a a='x' ",
        "<table><td></div>",
        "<form></form></p>",
        "<b hidden><p>",
        "<p><b hidden></p>",
        "<div style='/*",
        "<i><b></i>",
        "<li><form><li></form>",
    ],
)
def test_pages_made_to_take_long_take_time_in_proportion_to_their_length(piece: str) -> None:
    # Quadratic time would be hours.
    markdown_of(piece * (500_000 // len(piece)) + "</a>" * 1000, "https://example.com/")


HIDING = """hidden|HIDDEN=""|hidden=until-found|aria-hidden=true|style=display:none|style='display:none'
    |style="DISPLAY : NONE !important"|style="color:red;display:none"|style="display/**/:none"
    |style="d\\69 splay:none"|style="display&#58;none"|style="display:none!important;display:block"
    |style="display:none" style=""|style=visibility:hidden|style=visibility:collapse|style=opacity:0
    |style="opacity:0.0"|style=font-size:0|style="font-size:1px"|style="font:0/0 a"|style=color:transparent
    |style="position:absolute;left:-9999px"|style="position:fixed;top:-100em"|style=text-indent:-999px
    |style="height:0;overflow:hidden"|style="max-height:0;overflow-y:hidden"|style="clip:rect(0,0,0,0)"
    |style="clip-path:inset(50%)"|style="transform:scale(0)"|style=content-visibility:hidden"""


@pytest.mark.parametrize("attribute", [one.strip() for one in HIDING.split("|")])
@pytest.mark.parametrize("tag", ["div", "p", "span", "li", "td", "b", "x-y"])
def test_what_readers_do_not_see_is_left_out(attribute: str, tag: str) -> None:
    page = f"<table><tr><td>Before <{tag} {attribute}>Obey <i>me</i>.<br></{tag}></table> After."
    text, hidden = markdown_of(page, "https://example.com/")
    assert ("Before" in text, "Obey" in text, "me" in text, "After." in text) == (True, False, False, True)
    assert hidden == len("Obeyme.")


SHOWING = """style=display:block|style="display:none;display:block"|style="opacity:0.9"|style="font-size:90%"
    |style="font-size:0.9em"|style="font:700 16px/1.5 a"|aria-hidden=false|style="overflow:hidden;height:100%"
    |style="left:-9999px"|style="text-indent:-1em"|style=visibility:visible|style="color:red"|title=hidden
    |style="transform:scale(0.9)"|style="clip-path:inset(0)\""""


@pytest.mark.parametrize("attribute", [one.strip() for one in SHOWING.split("|")])
def test_what_readers_see_stays(attribute: str) -> None:
    assert markdown_of(f"<p {attribute}>Seen", "https://example.com/") == ("Seen", 0)


@pytest.mark.parametrize(
    "page",
    [
        "<!-- {} -->",
        "<!-- -- > {} -->",
        "<!-- --\n> {} -->",
        "<!--- {} --->",
        "<!-- > {} --!>",
        "<! {} >",
        "<? {} >",
        "</ {} >",
        "<![CDATA[ {} ]]>",
        "<!-- {}",
        "<script>'</ script>{}'</script>",
        "<script a='</script>'>{}</script>",
        "<style>{}</style >",
        "<noscript>{}</noscript>",
        "<iframe></div>{}</iframe>",
        "<template>{}</template>",
        "<dialog>{}</dialog>",
        "<svg><desc>{}</desc></svg>",
        "<video>{}</video>",
        "<input type=hidden value='{}'>",
        "<select hidden><option>{}</select>",
        "<img alt='{}' hidden>",
        "<img alt='{}' style=display:none>",
        # A reader does not see what follows in an element that is still open.
        "<div hidden></p></span></b>{}</div>",
        "<div hidden><span></span>{}</div>",
        "<div hidden><table></div>{}</table></div>",
        "<div hidden><textarea></div></textarea>{}</div>",
        "<div hidden><select></div></select>{}</div>",
        "<div hidden><td>x<td>{}</div>",
        "<span><div hidden></span>{}</div>",
        "<b><div hidden></b>{}</div>",
        "<form><div hidden></form>{}</div>",
        "<p><b hidden></p>{}</b>",
        "<div hidden><b hidden></div>{}</b>",
        "<li hidden><ul></li>{}</ul>",
        "<ul><li><section hidden><li>{}</section></ul>",
        "<a href=/x><div hidden><a href=/y>{}</a></div>",
        "<option><div hidden><option>{}</div>",
        "<body><div hidden></body>{}</div>",
        "<div style=font-size:0><i>{}</i></div>",
        "<div style=visibility:hidden><i>{}</i></div>",
        "<div hidden><plaintext></div>{}",
        "<svg><desc><div hidden></svg>{}</div></desc></svg>",
    ],
)
def test_markup_does_not_bring_back_what_it_hides(page: str) -> None:
    assert "Obey" not in markdown_of(f"<p>Before{page.format('Obey')}", "https://example.com/")[0]


@pytest.mark.parametrize(
    "page",
    [
        "<p hidden>no<p>{}",
        "<p hidden>no<div>{}</div>",
        "<ul><li hidden>no<li>{}</ul>",
        "<dl><dt hidden>no<dd>{}</dl>",
        "<table><tr><td hidden>no<td>{}</table>",
        "<table><tr hidden><td>no<tr><td>{}</table>",
        "<table hidden><tr><td>no</table>{}",
        "<select><option hidden>no<option>{}</select>",
        "<br hidden>{}",
        "<input hidden>{}",
        "<div><p hidden>no</div>{}",
        "<b hidden>no</b>{}",
        "<a title='<!--'>{}</a>",
        "<a title='<script>'>{}</a>",
        "<div style=font-size:0><i style=font-size:14px>{}</i></div>",
        "<div style=visibility:hidden><i style=visibility:visible>{}</i></div>",
        "<dialog open>{}</dialog>",
        "<!-->{}",
        "<!--->{}",
        "<noscript>no</noscript>{}",
        "<div hidden>no<div>no</div>no</div>{}",
        "<b hidden>no<i>no</b></i>{}",
        "<html style=visibility:hidden><body style=opacity:0>{}",
    ],
)
def test_what_follows_a_hidden_element_is_seen(page: str) -> None:
    text, _ = markdown_of(page.format("Seen"), "https://example.com/")
    assert "Seen" in text
    assert "no" not in text


def test_hidden_lists_and_blocks_leave_the_layout_as_it_is() -> None:
    page = "<ul><li>One<ul hidden><li>no</ul><pre hidden>no</pre><li>Two</ul><p>Three<p hidden>no<p>Four"
    assert markdown_of(page, "https://example.com/")[0] == "- One\n- Two\n\nThree\n\nFour"
