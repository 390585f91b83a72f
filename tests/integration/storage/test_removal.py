"""Files of tables are removed, wherever the lake is; tests/attacks/test_links.py has the links."""

from pathlib import Path

import pytest

from evalake.core.errors import LakeError
from evalake.storage.lake import Lake
from evalake.storage.maintenance import remove, require_no_links


@pytest.mark.parametrize("form", [str, Path.as_uri])
def test_names_with_any_character_are_removed(tmp_path: Path, form: object) -> None:
    names = ["model=a%2Fb%20c/part 1.parquet", "ü#?.parquet"]
    for name in names:
        (tmp_path / "my lake" / "toys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "my lake" / "toys" / name).touch()
    lake = Lake(form(tmp_path / "my lake"))  # type: ignore[operator]
    require_no_links(lake, "toys")
    remove(lake, "toys", names)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    (tmp_path / "my lake" / "toys" / "link").symlink_to("/")
    with pytest.raises(LakeError, match="toys/link is a link to '/'"):
        require_no_links(lake, "toys")


def test_a_folder_named_like_an_object_store_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (link := tmp_path / "s3:" / "bucket" / "lake" / "toys" / "link").parent.mkdir(parents=True)
    link.symlink_to("/")
    require_no_links(Lake("s3://bucket/lake"), "toys")
    with pytest.raises(LakeError, match="is a link"):
        require_no_links(Lake("s3:/bucket/lake"), "toys")
