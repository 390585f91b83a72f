"""What others wrote cannot steer a terminal, hide or turn text round; what people read stays as it is."""

from core.visible_text import visible


def test_what_steers_hides_or_turns_is_escaped_and_all_else_stays() -> None:
    assert visible("a\x1b[31m\u202eb\u2028\ud800\U000e0041") == "a\\u001b[31m\\u202eb\\u2028\\ud800\\U000e0041"
    assert visible("ls\n\t-l 名前 🙂 é") == "ls\n\t-l 名前 🙂 é"
