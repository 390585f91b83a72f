"""One campaign's rows of the table are written anew, and those of the others stay."""

from chaos.outcome import Outcome
from chaos.table import BEGIN, END, HEAD, written

ORDER = ["files", "load"]
LOAD = "| `load` | 200 clients | 200 | all reads | seed 1 |\n"
PAGE = f"# Before\n{BEGIN}{HEAD}| `files` | cut off | 3 | found | seed 1 |\n{LOAD}{END}after\n"


def test_a_campaigns_rows_take_the_place_of_its_earlier_ones_and_all_else_stays() -> None:
    outcomes = [Outcome("cut off", 4, "found"), Outcome("deleted", 5, "found", "a|b\nis unseen")]

    page = written(PAGE, ORDER, "files", outcomes, "seed 2")

    cut_off = "| `files` | cut off | 4 | found | seed 2 |\n"
    deleted = "| `files` | deleted | 5 | **not held**: a\\|b is unseen | seed 2 |\n"
    assert page == f"# Before\n{BEGIN}{HEAD}{cut_off}{deleted}{LOAD}{END}after\n"
