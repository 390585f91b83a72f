"""Source text is blanked without moving anything, and its functions are found by their braces."""

from hypothesis import given
from hypothesis import strategies as st

from evalake.suites.solidity_audit.baselines.solidity_code import blank, functions


@given(st.text(alphabet=st.sampled_from("function(){};/*\"' \nabc.=[]"), max_size=200))
def test_blanking_moves_nothing_and_functions_lie_in_the_source(source: str) -> None:
    code = blank(source, strings=True)
    assert len(code) == len(source)
    assert [i for i, c in enumerate(code) if c == "\n"] == [i for i, c in enumerate(source) if c == "\n"]
    for function in functions(code):
        assert 1 <= function.first_line <= function.body_line <= function.last_line <= source.count("\n") + 1


SOURCE = """contract C {
    modifier onlyOwner() { _; } // function no() {}
    function declared() external;
    constructor() { x = "}"; }
    function take(uint256 a)
        external
    {
        pay(a);
    }
    receive() external payable {}
    function () payable { y(); }
    function unfinished() { z();
"""


def test_functions_are_those_with_a_body_in_order() -> None:
    listed = functions(blank(SOURCE, strings=True))
    assert [(each.name, each.kind, each.first_line, each.body_line, each.last_line) for each in listed] == [
        ("onlyOwner", "modifier", 2, 2, 2),
        ("constructor", "constructor", 4, 4, 4),
        ("take", "function", 5, 7, 9),
        ("receive", "receive", 10, 10, 10),
        ("fallback", "fallback", 11, 11, 11),
        ("unfinished", "function", 12, 12, 12),
    ]
    assert listed[2].body.strip() == "pay(a);"
    assert "external" in listed[2].header


def test_strings_stay_unless_their_content_is_to_go() -> None:
    line = 'a = "// no comment"; // one'
    assert blank(line).rstrip() == 'a = "// no comment";'
    assert blank(line, strings=True).rstrip() == 'a = "             ";'
