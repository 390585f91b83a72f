"""Cases of tests that are data: JSON beside the tests that read them."""

import json
from pathlib import Path
from typing import Any


def cases_beside(module: str, name: str = "cases.json") -> Any:
    """Read a file of cases beside a module of tests, whose `__file__` is given."""
    return json.loads(Path(module).with_name(name).read_text(encoding="utf-8"))
