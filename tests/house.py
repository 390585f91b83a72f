"""Counts the house: `python -m tests.house` prints lines, files, import roots and what a run imports.

Lines of code are those with a token that is neither a comment nor a docstring.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("contracts", "evalake", "flows", "storage", "tasks")
NO_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
)  # fmt: skip
WORDY = ("README.md", "ARCHITECTURE.md")


def lines_of_code(source: str) -> int:
    """Count the lines with code, without comments, docstrings and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for first in node.body[:1]:
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def python_files(*folders: str) -> Iterator[Path]:
    """Yield the Python files below some folders of the project."""
    for folder in folders:
        yield from (file for file in sorted((ROOT / folder).rglob("*.py")) if "node_modules" not in file.parts)


def imported_by(module: str) -> int:
    """Count the modules of ours that importing one module imports."""
    code = f"import sys, {module}; print(sum(name.split('.')[0] == 'evalake' for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    return int(done.stdout)


def counts() -> Mapping[str, int]:
    """Count all that is to fall."""
    production = list(python_files(*ROOMS))
    return {
        "lines of production code": sum(lines_of_code(file.read_text(encoding="utf-8")) for file in production),
        "production files": len(production),
        "import roots": 1,
        "modules imported by the flow of a run": imported_by("evalake.flows.evaluate"),
        "lines of test code": sum(lines_of_code(file.read_text(encoding="utf-8")) for file in python_files("tests")),
        "words of README and ARCHITECTURE": sum(
            len((ROOT / name).read_text(encoding="utf-8").split()) for name in WORDY
        ),
    }


if __name__ == "__main__":
    for what, number in counts().items():
        sys.stdout.write(f"{number:>8,}  {what}\n")
