"""`evalake settle`: buys samples in rounds until a gate's rules are decided."""

from collections.abc import Mapping
from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.environment import flows_begun, start_server
from evalake.cli.options import JsonOption, takes
from evalake.cli.terminal import say
from evalake.request import RunRequest

if TYPE_CHECKING:
    from evalake.decisions.sample_size import Round


@takes("judges", "datasets", "configuration_file", "lake")
def settle(
    asked: Mapping[str, Any],
    suite: Annotated[str, typer.Argument(help="The suite; an unknown name lists all.", metavar="SUITE")],
    model: Annotated[str, typer.Option("--model", help="The model that must pass the rules.", metavar="NAME")],
    rule: Annotated[
        list[str], typer.Option("--rule", help="A rule, as of `evalake gate`; can be repeated.", metavar="RULE")
    ],
    against: Annotated[
        str | None, typer.Option("--against", help="The baseline model of rules about changes.", metavar="NAME")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", min=0, help="The cost ceiling of all rounds.", metavar="USD")
    ] = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", min=1, help="The most calls of all rounds.", metavar="N")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Buy samples in rounds until every rule is decided, the budget is used up, or no sample is left.

    Rounds are one draw over all datasets, in proportion and shuffled. Intervals are wide enough to be looked at after
    every round. Each round is a run; all have one tag, and the ledger knows what the one before asked. Exits with 0
    where all rules pass, 1 where any fails, 3 where nothing fails but something is undecided, 2 on wrong usage.
    """
    from evalake.cli.configuration import read

    server = start_server()

    from evalake.decisions.sample_size import require_settleable
    from evalake.decisions.sample_size import settle as settle_rules
    from evalake.storage.reservations import Ceiling
    from evalake.tasks.preflight import check
    from evalake.tasks.runtime.context import options_of
    from evalake.tasks.runtime.runs import SETTLE_TAG

    models = list(dict.fromkeys(filter(None, (model, against))))
    request = RunRequest(suite, models=models, tags=[f"{SETTLE_TAG}{token_hex(4)}"], **asked)
    read(request.configuration_file)
    plan = check(replace(request, max_cost_usd=budget, max_calls=max_calls))
    require_settleable(plan.suite, options_of(plan.suite, plan.configuration), rule, against)
    units = {(each.name, sample.cluster or sample.sample_id) for each in plan.datasets for sample in each.samples}

    from evalake.run import carry_out

    def ask(size: int, ceiling: Ceiling) -> str:
        pooled = None if size == plan.samples else size
        return carry_out(replace(request, pooled=pooled, max_cost_usd=ceiling.usd, max_calls=ceiling.calls))

    ceiling = Ceiling(budget, max_calls)
    rounds: list[Round] = []
    with flows_begun(server):
        told = settle_rules(
            plan.lake, ask, plan.samples, rule, model=model, against=against, budget=ceiling, units=len(units)
        )
        for each in told:
            rounds.append(each)
            _say(each, len(rounds), plan.samples)
    _print(rounds, plan.samples, as_json=json)
    if code := rounds[-1].gate.exit_code:
        raise typer.Exit(code)


def _say(each: "Round", number: int, most: int) -> None:
    from evalake.reports.wording import dollars

    cost = "cost unknown" if each.cost_usd is None else f"{dollars(each.cost_usd)} USD"
    say(
        f"round {number}: {each.samples:,} of {most:,} samples, {each.calls_made:,} calls made, {cost}: "
        f"{each.gate.tally}"
    )


def _print(rounds: "list[Round]", most: int, *, as_json: bool) -> None:
    from evalake.cli import output as show
    from evalake.cli.gate import print_checks, rows_of
    from evalake.decisions.sample_size import PROMISE

    last = rounds[-1]
    if as_json:
        listed = [
            {"samples": each.samples, "run_id": each.run_id, "calls_made": each.calls_made, "cost_usd": each.cost_usd}
            for each in rounds
        ]
        checks = rows_of(last.gate).to_dicts()
        show.as_json(
            {
                "verdict": last.gate.verdict,
                "stopped": last.stopped,
                "rounds": listed,
                "checks": checks,
                "notes": last.gate.notes,
                "promise": PROMISE,
            }
        )
        return
    print_checks(last.gate)
    show.paragraph(PROMISE)
    left = most - last.samples
    typer.echo(f"stopped: {last.stopped}" + (f"; {left:,} of {most:,} samples were not asked" if left else ""))
