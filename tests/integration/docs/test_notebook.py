"""docs/notebook.ipynb runs from its first cell to its last, in a fresh folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    cells = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    (tmp_path / "cells.py").write_text(_as_program(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "cells.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PREFECT_HOME": str(tmp_path / "prefect")},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    assert len(shown) == len(code)
    assert "balanced_accuracy" in shown[1]  # a run is shown by its headline
    assert all("<table" in html for html in shown[1:])


def _as_program(code: list[str]) -> str:
    """Return a program that runs cells as a notebook does, and prints what each of them shows as HTML."""
    return f"""
import ast, json
shown, names = [], {{}}
for cell in {code!r}:
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    value = None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    shown.append("" if value is None else value._repr_html_())
print(json.dumps(shown))
"""
