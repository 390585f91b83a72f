"""`evalake run`, `settle`, `calibrate` and `roadmap`: commands that run a flow in this process.

Heavy libraries are imported once the request is sound, while the Prefect server starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalake.cli.environment import flows_begun, start_server
from evalake.cli.help import App, SuiteCommand, complete_suite
from evalake.cli.options import (
    LAKE,
    ConfigOption,
    CorrectedOption,
    Format,
    FullOption,
    JsonOption,
    LakeOption,
    RowsAsJsonOption,
    StyleOption,
    names,
    style_of,
    suite_with,
    takes,
)
from evalake.cli.terminal import say
from evalake.core.configuration import whole_address
from evalake.core.files import place_in
from evalake.core.phases import phase
from evalake.request import OPTIONS, RunRequest

if TYPE_CHECKING:
    from evalake.decisions.sample_size import Round
    from evalake.tasks.preflight import Plan

app = App()
MOST = 20  # printed themes of each kind


@app.command("run", cls=SuiteCommand)
@takes(*list(OPTIONS)[1:])
def run(
    asked: Mapping[str, Any],
    suite: Annotated[str, typer.Argument(help=OPTIONS["suite"].text, metavar="SUITE", autocompletion=complete_suite)],
    again: Annotated[bool, typer.Option("--again", help="Repeat known calls, under the next free replicate.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Make no calls; print how many a run would make, and their estimated cost."),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder of the report.", metavar="DIR")] = Path("evalake-reports"),
    full: FullOption = False,
    corrected: CorrectedOption = False,
    json: JsonOption = False,
) -> None:
    """Evaluate models on a suite; the ledger answers known calls."""
    from evalake.cli.configuration import is_path, read, suite_at
    from evalake.models.routes import require_usual_keys

    suite = suite_at(suite) if is_path(suite) else suite
    request = RunRequest(suite, **asked)
    configuration = read(request.configuration_file)
    if not dry_run:
        require_usual_keys([*request.models, *request.judges], configuration)
    server = None if dry_run else start_server()

    from evalake.tasks.preflight import carried, check, lines_of

    if again:
        request = replace(request, first_replicate=_next_replicate(request))
    with phase("read the suite and its samples"):
        plan = check(request, with_keys=not dry_run)
    if not json:
        for line in lines_of(plan):  # the samples, and the left-out ones
            say(line)
        _say_changed_scorer(plan)
    if dry_run or not json:
        with phase("look up the ledger"):
            _estimate(plan, whole=dry_run, as_json=json)
    if dry_run:
        return
    if server and not json:
        say("waiting for a Prefect server …")

    with phase("load Prefect and the flow"):
        from evalake.cli.outcome import finish
        from evalake.flows.evaluate import evaluate
    from evalake.tasks.runtime.form import run_id_of
    from evalake.tasks.runtime.runs import run_of_flow

    with flows_begun(server), carried(request, plan):
        state = evaluate(**request.parameters, return_state=True)
    flow_run_id = str(state.state_details.flow_run_id)
    run_id = run_of_flow(plan.lake, flow_run_id) or run_id_of(flow_run_id)
    finish(state, run_id, request, out, as_json=json, full=full, corrected=corrected)


def _next_replicate(request: RunRequest) -> int:
    """Find the next free replicate, and print it."""
    from evalake.storage.lake import Lake
    from evalake.tasks.extract import next_replicate

    number = next_replicate(Lake(request.lake), request.suite, request.models)
    say(f"asking again, as replicate {number}")
    return number


def _say_changed_scorer(plan: "Plan") -> None:
    """Say that the suite's scorer is another one than in its latest snapshot, whose rows stay as they are."""
    import polars as pl

    from evalake.contracts.tables import SNAPSHOTS

    if not plan.lake.exists(SNAPSHOTS):
        return
    ours = plan.lake.frame(SNAPSHOTS).filter(pl.col("suite") == plan.suite.name)
    latest = ours.sort("created_at").tail(1).select("run_id", "scorer_version").collect()
    for run_id, version in latest.iter_rows():
        if version != plan.suite.scoring.version:
            say(
                f"the scorer of {plan.suite.name} has changed since run {run_id} ({version}, now "
                f"{plan.suite.scoring.version}): `evalake rescore {run_id}` scores its replies again, without a call"
            )


def _estimate(plan: "Plan", *, whole: bool, as_json: bool) -> None:
    """Print the calls and costs of the run; before a large run, by a part of its items."""
    from evalake.cli import output as show
    from evalake.tasks.plan import QUICK_ITEMS, estimate
    from evalake.tasks.runtime.context import RunContext

    context = RunContext("", plan.suite.name, plan.lake, plan.configuration)
    planned = estimate(context, plan, None if whole else QUICK_ITEMS)
    if as_json:
        show.as_json(planned.as_dict())
        return
    for line in planned.lines():
        (show.line if whole else say)(line)


@app.command("settle")
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
            _say_round(each, len(rounds), plan.samples)
    _print_rounds(rounds, plan.samples, as_json=json)
    if code := rounds[-1].gate.exit_code:
        raise typer.Exit(code)


def _say_round(each: "Round", number: int, most: int) -> None:
    from evalake.reports.wording import dollars

    cost = "cost unknown" if each.cost_usd is None else f"{dollars(each.cost_usd)} USD"
    say(
        f"round {number}: {each.samples:,} of {most:,} samples, {each.calls_made:,} calls made, {cost}: "
        f"{each.gate.tally}"
    )


def _print_rounds(rounds: "list[Round]", most: int, *, as_json: bool) -> None:
    from evalake.cli import output as show
    from evalake.cli.decide import print_checks, rows_of
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


@app.command("calibrate")
def calibrate(
    judges: Annotated[str, typer.Option(help="The judges, by comma.", metavar="NAMES")],
    suite: Annotated[
        str | None,
        typer.Option(help="The suite with the calibration set; default: the first with one.", metavar="SUITE"),
    ] = None,
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
) -> None:
    """Measure judges on items of known judgement; the ledger answers known calls."""
    import polars as pl

    from evalake.cli import output as show
    from evalake.tasks.calibrate import calibrated_suites

    style = style_of(style, as_json=json)

    chosen = suite_with("calibration set", calibrated_suites(), suite)
    wanted = names("--judges", judges) or []
    say("starting Prefect …")
    server = start_server()

    from evalake.flows.calibrate import calibrate as flow

    with flows_begun(server):
        rows = flow(chosen, wanted, lake, str(config) if config else None)
    show.rows(pl.DataFrame(rows), style)


@app.command("roadmap")
def roadmap(
    suite: Annotated[
        str | None,
        typer.Option(help="The suite of the results; default: the one with a roadmap.", metavar="SUITE"),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(help="The model that groups by meaning; default: rules, by common words.", metavar="NAME"),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the grouping of a labelled set; make no roadmap.")
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder of its page.", metavar="DIR")] = Path("evalake-reports"),
    config: ConfigOption = None,
    lake: LakeOption = LAKE,
    json: JsonOption = False,
) -> None:
    """Group the gaps of scored results, like missing tools, and rank them by lost points.

    The ledger answers known calls, so the same results give the same roadmap at no cost.
    """
    from evalake.admin.roadmap import as_data, roadmap_suites, rows_of
    from evalake.cli import output as show

    name = suite_with("roadmap", roadmap_suites(), suite)
    say("starting Prefect …")
    server = start_server()

    from evalake.flows.roadmap import measure_roadmap
    from evalake.flows.roadmap import roadmap as flow
    from evalake.reports.page import write_roadmap
    from evalake.storage.lake import Lake

    file = str(config) if config else None
    if measure:
        with flows_begun(server):
            measured = measure_roadmap(name, judge, lake, file)
        if json:
            show.as_json(measured)
        else:
            _print_measured(measured)
        return
    with flows_begun(server):
        made = flow([name], judge, lake, file)
    data = as_data(rows_of(Lake(lake), made.get(name, "")))
    if json:
        show.as_json(data)
    elif data["roadmap_id"] is None:
        say(f"the lake {whole_address(lake)} has no scored results of {name} with gaps")
    else:
        _print_roadmap(data)
        typer.echo(f"\nreport: {write_roadmap(data, place_in(out, data['roadmap_id'][:12]))}")


def _print_roadmap(data: Mapping[str, Any]) -> None:
    """Print the most costly themes by kind."""
    import polars as pl

    from evalake.cli import output as show

    by = f"by {data['judge']}" if data["judge"] else "by the words in common"
    show.line(f"{data['title']}: {data['samples']} scored samples, grouped {by}")
    for kind in data["kinds"]:
        if themes := kind["themes"]:
            show.line(f"\n{kind['title']}{f', the first {MOST} of {len(themes)}' if len(themes) > MOST else ''}")
            table = pl.DataFrame(
                [
                    {
                        "#": theme["rank"],
                        "samples": theme["samples"],
                        "points lost": round(theme["points_lost"], 1),
                        "mean score": round(theme["mean_score"], 1),
                        "theme": theme["theme"],
                    }
                    for theme in themes[:MOST]
                ]
            )
            show.lines(table)


def _print_measured(measured: Sequence[Mapping[str, Any]]) -> None:
    """Print the quality of grouping on a labelled set."""
    import polars as pl

    from evalake.cli import output as show

    rows = [{name.replace("_", " "): _rounded(value) for name, value in row.items()} for row in measured]
    show.table(pl.DataFrame(rows))


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
