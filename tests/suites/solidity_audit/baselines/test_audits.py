"""What rule-based judges read of a prompt: its blocks, the audit's findings, the lines and kinds that words name."""

import tracemalloc

import pytest

from tests.suites.solidity_audit.baselines.material import claim, judged


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
