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
        markdown_of(PAGE, "https://example.com/a/")
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
    assert isinstance(markdown_of(text, "https://example.com/"), str)


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
    ],
)
def test_pages_made_to_take_long_take_time_in_proportion_to_their_length(piece: str) -> None:
    # Quadratic time would be hours.
    markdown_of(piece * (500_000 // len(piece)) + "</a>" * 1000, "https://example.com/")
