"""What others wrote cannot steer a terminal, hide or turn text round; what people read stays as it is."""

from evalake.core.redaction import visible


def test_what_steers_hides_or_turns_is_escaped_and_all_else_stays() -> None:
    assert visible("a\x1b[31m\u202eb\u2028\ud800\U000e0041") == "a\\u001b[31m\\u202eb\\u2028\\ud800\\U000e0041"
    assert visible("ls\n\t-l 名前 🙂 é") == "ls\n\t-l 名前 🙂 é"


def test_selectors_of_variants_stay_behind_symbols_only() -> None:
    assert visible("\u2764\ufe0f 1\ufe0f\u20e3") == "\u2764\ufe0f 1\ufe0f\u20e3"
    hidden = "a\ufe0f\ufe01\U000e0101\u034f\u180b"
    assert visible(hidden) == "a\\ufe0f\\ufe01\\U000e0101\\u034f\\u180b"
