"""The encoding and the delimiter of a text are found out from its bytes."""

from pathlib import Path

import pytest

from evalake.sdk.tabular import encoding_of

TEXT = "name,value\nMärz,1\n"


def written(folder: Path, content: bytes) -> Path:
    (folder / "t.csv").write_bytes(content)
    return folder / "t.csv"


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (b"", "utf-8"),
        (b"name,value\n", "utf-8"),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8-sig"),
        (TEXT.encode("utf-16"), "utf-16"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        (TEXT.encode("utf-32"), "utf-32"),
        (TEXT.encode("latin-1"), "cp1252"),
        (b"x" * 2_000_000 + "ä".encode("latin-1"), "cp1252"),
        ("für".encode() + b"\xff", "utf-8"),  # damaged UTF-8 is no Latin-1
    ],
)
def test_an_encoding_is_told(tmp_path: Path, content: bytes, encoding: str) -> None:
    assert encoding_of(written(tmp_path, content)) == encoding
