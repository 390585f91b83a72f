"""Cells of sheets that a spreadsheet takes as text, though they begin as a formula does."""

import re

_PASSED_OVER = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\u3000\ufeff]"  # white or unseen
# A sign by which a formula begins, narrow or of another width, after anything that a spreadsheet may pass over
FORMULA = rf"^{_PASSED_OVER}*[=+\-@＝＋－＠﹢﹣﹦﹫−]|^[\t\r\n]"
_FORMULA = re.compile(FORMULA)


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet may take a text for a formula; it does not with `'` before it."""
    return _FORMULA.search(text) is not None
