"""What rule-based judges read of a prompt: its blocks, the audit's findings, the lines and kinds that words name."""

import tracemalloc

import pytest

from evalake.models.request import BaselineRefusedError
from evalake.sdk.sample import delimit_untrusted
from evalake.suites.solidity_audit.baselines.audits import (
    Material,
    families,
    lines_of,
    read_material,
)
from tests.unit.suites.solidity_audit.baselines.material import claim, judged


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"findings": [' * 50_000,
        "- reentrancy\n" * 20_000,
        '{"findings": [1, null, "x", []]}',
        "\n \n" * 60_000,
    ],
)
def test_no_audit_wears_the_judge_out(text: str) -> None:
    assert len(judged(text)["findings"]) <= 100


def test_line_ranges_without_end_take_no_memory() -> None:
    ranges = " ".join(f"line {1001 * number}-9999999" for number in range(9_000))
    tracemalloc.start()
    try:
        judged(claim(type="reentrancy", location=ranges))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("line 7", {7}),
        ("Lines 3-5 and line 9", {3, 4, 5, 9}),
        ("lines 3 to 4", {3, 4}),
        ("line 5-3", set()),
        ("L7", set()),
        ("7 lines", set()),
    ],
)
def test_lines_are_those_that_a_text_names(text: str, lines: set[int]) -> None:
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("A re-entrant call", {"reentrancy"}),
        ("tx.origin phishing", {"tx_origin_authentication"}),
        ("time_manipulation", {"timestamp_dependence"}),
        ("unchecked arithmetic", {"unchecked_return_value", "integer_overflow"}),
        ("the windows", set()),  # "dos" within a word is none
        ("", set()),
    ],
)
def test_kinds_are_known_by_their_words(text: str, kinds: set[str]) -> None:
    assert families(text) == kinds


def test_a_prompt_without_an_audit_is_no_material() -> None:
    blocks = {"form": "{}", "ground_truth": '{"is_vulnerable": false}', "contract": "1| x", "audit": "fine"}
    whole = [delimit_untrusted(name, text) for name, text in blocks.items()]
    read = read_material([{"role": "user", "content": "\n\n".join(whole)}])
    assert read == Material({}, {"is_vulnerable": False}, "1| x", "fine")
    for lacking in ([{"role": "user", "content": "\n\n".join(whole[:-1])}], []):
        with pytest.raises(BaselineRefusedError):
            read_material(lacking)
