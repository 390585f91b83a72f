"""The table of what held, in a page that says more."""

from collections.abc import Sequence

from chaos.outcome import Outcome

BEGIN, END = "<!-- written by make chaos -->\n", "<!-- end -->\n"
HEAD = "| campaign | fault | times | what held | drawn |\n|---|---|---|---|---|\n"


def written(page: str, campaigns: Sequence[str], name: str, outcomes: Sequence[Outcome], drawn: str) -> str:
    """Replace a campaign's earlier rows in the page by its outcomes; the rows are in the order of `campaigns`.

    `drawn` names the seed, the date and the machine.
    """
    before, rest = page.split(BEGIN)
    table, after = rest.split(END)
    rows = [row for row in table.removeprefix(HEAD).splitlines() if _campaign_of(row) != name]
    rows += [f"| `{name}` | {each.fault} | {each.injected} | {_told(each)} | {drawn} |" for each in outcomes]
    rows.sort(key=lambda row: campaigns.index(_campaign_of(row)))
    return before + BEGIN + HEAD + "".join(f"{row}\n" for row in rows) + END + after


def _campaign_of(row: str) -> str:
    return row.split("`")[1]


def _told(outcome: Outcome) -> str:
    said = f"**not held**: {outcome.broken}" if outcome.broken else outcome.held
    return " ".join(said.replace("|", "\\|").split())
