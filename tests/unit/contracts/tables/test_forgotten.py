"""What is forgotten is named by hashes alone, and a removal that is done replaces the row that asked for it."""

from evalake.contracts.tables.quality import FORGOTTEN
from tests.unit.contracts.tables.rows import SHA, broken_by


def test_nothing_but_a_hash_names_what_is_forgotten() -> None:
    assert broken_by(FORGOTTEN, row_hash=SHA) == []
    assert broken_by(FORGOTTEN, row_hash="the secret itself") == ["row_hash_is_sha256"]


def test_a_removal_that_is_not_done_has_no_version() -> None:
    assert broken_by(FORGOTTEN, first_version=None) == []
    assert broken_by(FORGOTTEN, first_version=-1) == ["first_version_not_negative"]
    assert FORGOTTEN.replaced_when == "TRUE"
