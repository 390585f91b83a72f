"""What campaigns came to is read at 80 columns: what several faults came to once, and how long each took."""

from chaos.outcome import Outcome
from chaos.summary import WIDTH, Took, summary, told

LONG = "3000 result rows once each, no committed call asked again, 72 calls repeated of 729 that were in flight"
FILES = Took("files", 33.6, [Outcome("run: SIGKILL", 2, LONG), Outcome("run: out of memory", 1, LONG)])
LOAD = Took("load", 314, [Outcome("200 clients", 250, "", "99 % of reads took up to 121 ms")])


def test_a_campaign_says_what_several_faults_came_to_once() -> None:
    lines = told(FILES).splitlines()
    assert lines[:3] == ["files, 34 s", "      2  run: SIGKILL", "      1  run: out of memory"]
    assert " ".join(line.strip() for line in lines[3:]) == LONG
    assert max(map(len, lines)) <= WIDTH


def test_what_did_not_hold_is_told_apart() -> None:
    assert "NOT HELD: 99 % of reads took up to 121 ms" in told(LOAD)
    assert summary([FILES, LOAD]).splitlines() == [
        "",
        "files             34 s         3 times  held",
        "load             314 s       250 times  NOT HELD",
        "all together     348 s       253 times  NOT HELD",
    ]
