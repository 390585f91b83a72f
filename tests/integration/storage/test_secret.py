"""The secret of a lake: made once, whoever asks at the same moment, kept by backups, and never silently another."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalake.core.errors import LakeError
from evalake.storage.backup import back_up
from evalake.storage.lake import Lake
from evalake.storage.secret import BYTES, FOLDER, ensure_secret, read_secret
from evalake.suites.registry import all_contracts

MAKE = "import sys; from evalake.storage.lake import Lake; from evalake.storage.secret import ensure_secret; "
MAKE += "sys.stdin.readline(); print(ensure_secret(Lake(sys.argv[1])).hex())"


def test_processes_that_need_it_at_the_same_moment_get_the_same(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "my lake"))
    words = [sys.executable, "-c", MAKE, lake.uri]
    makers = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = {maker.communicate("\n")[0].strip() for maker in makers}
    assert said == {ensure_secret(lake).hex()}
    assert len(ensure_secret(lake)) == BYTES


def test_who_only_reads_makes_none(tmp_path: Path) -> None:
    assert read_secret(Lake(str(tmp_path / "lake"))) is None
    assert not (tmp_path / "lake").exists()


def test_each_lake_has_its_own_and_a_backup_keeps_it(tmp_path: Path) -> None:
    lake, other, copy = (Lake(str(tmp_path / name)) for name in ("lake", "other", "copy"))
    assert ensure_secret(lake) != ensure_secret(other)
    back_up(lake, copy, all_contracts())
    assert read_secret(copy) == read_secret(lake)
    back_up(lake, copy, all_contracts())
    with pytest.raises(LakeError, match=FOLDER):
        back_up(other, copy, all_contracts())


def test_a_damaged_one_is_named_and_not_replaced(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    secret = ensure_secret(lake)
    (entry,) = (tmp_path / "lake" / FOLDER / "_delta_log").iterdir()
    entry.write_text(entry.read_text().replace(secret.hex(), secret.hex()[:-2]))
    with pytest.raises(LakeError, match=r"the secret of the lake .* is damaged: restore the folder _secret"):
        ensure_secret(lake)
    shutil.rmtree(tmp_path / "lake" / FOLDER)
    assert ensure_secret(lake) != secret
