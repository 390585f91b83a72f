"""How lakes and runs are shown in a notebook."""

from html import escape

import polars as pl

from evalake.reports.wording import visible


def titled(title: str, frame: pl.DataFrame | None) -> str:
    """Write a title, and a frame under it where there is one, as HTML in which no text of others is markup."""
    heading = f"<strong>{escape(visible(title))}</strong>"
    return heading if frame is None else f"{heading}{frame._repr_html_()}"
