"""What a notebook shows holds no markup of others, and shows what would hide."""

import polars as pl

from evalake.display import titled


def test_a_title_of_others_is_text() -> None:
    assert titled("<b>a</b> & b", None) == "<strong>&lt;b&gt;a&lt;/b&gt; &amp; b</strong>"
    assert "\u202e" not in titled("a\u202eb", None)


def test_a_frame_stands_under_its_title_and_its_cells_are_text() -> None:
    shown = titled("Runs", pl.DataFrame({"name": ["<script>alert(1)</script>"]}))
    assert shown.startswith("<strong>Runs</strong>")
    assert "<table" in shown
    assert "<script>" not in shown
