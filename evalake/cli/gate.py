"""`evalake gate` and `settle`: check a run against rules, or buy samples until the rules are decided."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.text import Text

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.configuration import command, read
from evalake.cli.help import App
from evalake.cli.terminal import flows_begun, say, start_server, write_text
from evalake.core.errors import LakeError
from evalake.request import RunRequest

if TYPE_CHECKING:
    from evalake.decisions.sample_size import Round
    from evalake.reports.gate import Gate
    from evalake.storage.reservations import Ceiling

app = App()


@app.command("gate")
def gate(
    run: Annotated[str, typer.Argument(help="A run, a snapshot, or RUN:MODEL.", metavar="RUN")],
    rule: Annotated[
        list[str],
        typer.Option(
            "--rule",
            help="METRIC >= NUMBER, METRIC <= NUMBER, no significant drop|rise in METRIC, or no drop|rise over NUMBER "
            "in METRIC; METRIC may be METRIC[SLICE=VALUE]. Nothing passes under 20 units, unless the rule ends with: "
            "from N units. Give it once for each rule.",
            metavar="RULE",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(help="The baseline of rules about changes, in the form of RUN.", metavar="REF"),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML there.", metavar="FILE")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write Markdown there.", metavar="FILE")] = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
    force: options.Force = False,
    adjust: Annotated[
        bool, typer.Option("--adjust", help="Hold all level rules together to the error of one (Bonferroni).")
    ] = False,
    corrected: options.Corrected = False,
) -> None:
    """Check a run against rules; each model must pass each rule with each judge.

    Exits with 0 where all pass, 1 where any fails, 3 where nothing fails but something is undecided, 2 on wrong usage.
    """
    from evalake.decisions.gate import hold_gate
    from evalake.decisions.rules import keep
    from evalake.reports.files import junit_of_gate, markdown_of_gate

    style = options.style_of(style, as_json=json)
    where = options.open_lake(lake)
    held = hold_gate(where, run, rule, baseline=baseline, force=force, adjust=adjust, corrected=corrected)
    try:
        keep(where, held)
    except LakeError as error:
        say(f"the decisions are not kept in the lake's history of gates: {error}")
    for path, text in ((junit, junit_of_gate(held)), (markdown, markdown_of_gate(held))):
        if path is not None:
            write_text(path, text)
    if style is options.Format.table:
        print_checks(held)
        changes = (check for check in held.checks if check.difference is not None)
        if held.baseline is not None and any(check.decision.verdict != "PASS" for check in changes):
            typer.echo(f"see: {command('compare', held.run, held.baseline, lake=lake)}")
    else:
        for note in held.notes:
            say(note)
        show.rows(rows_of(held), style)
    if held.exit_code:
        raise typer.Exit(held.exit_code)


def rows_of(held: "Gate") -> pl.DataFrame:
    """Convert the verdicts to rows."""
    names = ("value", "baseline", "difference", "ci_low", "ci_high", "limit_low", "limit_high", "p_holm", "missing")
    rows = [
        {
            **{"rule": check.rule, "model": check.model, "judge": check.judge},
            **{"verdict": str(check.decision.verdict), "more_samples": check.decision.more_samples},
            "more_at_least": check.decision.more_at_least,
            **{name: getattr(check, name) for name in names},
            **{"units": check.units, "reliable": check.is_reliable, "reason": check.reason},
        }
        for check in held.checks
    ]
    numbers = dict.fromkeys(names, pl.Float64()) | dict.fromkeys(("more_samples", "more_at_least", "units"), pl.Int64())
    texts = dict.fromkeys(("judge", "reason"), pl.String())
    return pl.DataFrame(rows, schema_overrides={**numbers, **texts}, infer_schema_length=None)


def print_checks(held: "Gate") -> None:
    """Print the verdicts by rule, then the summary."""
    rule = None
    for check in held.checks:
        if check.rule != rule:
            show.paragraph(check.rule)
            rule = check.rule
        colour = {"PASS": "green", "FAIL": "red"}.get(check.decision.verdict, "yellow")
        show.paragraph(f"{check.subject}: {check.detail}", Text(f"  {check.decision.verdict:<10}", colour))
    for note in held.notes:
        show.paragraph(f"note: {note}")
    show.paragraph(held.summary)


@app.command("settle")
@options.takes("judges", "datasets", "max_missing", "accept_unreadable", "configuration_file", "lake")
def settle(
    asked: Mapping[str, Any],
    suite: Annotated[str, typer.Argument(help="The suite; an unknown name lists all.", metavar="SUITE")],
    model: Annotated[str, typer.Option(help="The model that must pass the rules.", metavar="NAME")],
    rule: Annotated[list[str], typer.Option(help="A rule, as of `evalake gate`; can be repeated.", metavar="RULE")],
    against: Annotated[
        str | None, typer.Option(help="The baseline model of rules about changes.", metavar="NAME")
    ] = None,
    budget: Annotated[float | None, typer.Option(min=0, help="The cost ceiling of all rounds.", metavar="USD")] = None,
    max_calls: Annotated[int | None, typer.Option(min=1, help="The most calls of all rounds.", metavar="N")] = None,
    json: options.Json = False,
) -> None:
    """Buy samples in rounds until every rule is decided, the budget is used up, or no sample is left.

    Rounds are one draw over all datasets, in proportion and shuffled. Intervals are wide enough to be looked at after
    every round. Each round is a run; all have one tag, and the ledger knows what the one before asked. Exits with 0
    where all rules pass, 1 where any fails, 3 where nothing fails but something is undecided, 2 on wrong usage.
    """
    server = start_server()

    from evalake.decisions.sample_size import require_settleable
    from evalake.decisions.sample_size import settle as settle_rules
    from evalake.run import carry_out
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

    def ask(size: int, ceiling: "Ceiling") -> str:
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
    from evalake.decisions.sample_size import PROMISE

    last = rounds[-1]
    if as_json:
        listed = [
            {name: getattr(each, name) for name in ("samples", "run_id", "calls_made", "cost_usd")} for each in rounds
        ]
        decided = {"verdict": last.gate.verdict, "stopped": last.stopped, "rounds": listed}
        checks = rows_of(last.gate).to_dicts()
        show.as_json({**decided, "checks": checks, "notes": last.gate.notes, "promise": PROMISE})
        return
    print_checks(last.gate)
    show.paragraph(PROMISE)
    left = most - last.samples
    show.paragraph(f"stopped: {last.stopped}" + (f"; {left:,} of {most:,} samples were not asked" if left else ""))
