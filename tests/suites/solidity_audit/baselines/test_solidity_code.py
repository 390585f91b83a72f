"""Source text is blanked without moving anything, and its functions are found by their braces."""

from hypothesis import given
from hypothesis import strategies as st

from suites.solidity_audit.baselines.solidity_code import blank, functions


@given(st.text(alphabet=st.sampled_from("function(){};/*\"' \nabc.=[]"), max_size=200))
def test_blanking_moves_nothing_and_functions_lie_in_the_source(source: str) -> None:
    code = blank(source, strings=True)
    assert len(code) == len(source)
    assert [i for i, c in enumerate(code) if c == "\n"] == [i for i, c in enumerate(source) if c == "\n"]
    for function in functions(code):
        assert 1 <= function.first_line <= function.body_line <= function.last_line <= source.count("\n") + 1
