"""`evalake compare`, `explain`, `power`, `gate` and `settle`: differences, what would show them, and rules."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from evalake.cli import options
from evalake.cli import output as show
from evalake.cli.configuration import command, read
from evalake.cli.help import App
from evalake.cli.terminal import flows_begun, say, start_server, write_text
from evalake.core.errors import LakeError, UsageError
from evalake.request import RunRequest

if TYPE_CHECKING:
    from evalake.decisions.sample_size import Round
    from evalake.reports.gate import Gate
    from evalake.storage.reservations import Ceiling

app = App()
GAP = 2
LONGEST_NAME = 76
HEADINGS = ("A", "B", "A-B", "p", "units", "flips")
LISTED = ("part", "side", "dataset", "sample_id", "replicate", "prompt_hash")


@app.command("compare")
def compare(
    a: Annotated[
        str, typer.Argument(help="A model, a run, a snapshot, RUN:MODEL or RUN:MODEL:PROMPT_TYPE.", metavar="A")
    ],
    b: options.OtherSide,
    metric: Annotated[str | None, typer.Option(help="Only this metric, in all of its slices.", metavar="NAME")] = None,
    run: options.RunOfModels = None,
    tag: options.NewestTagged = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
    force: options.Force = False,
    corrected: options.Corrected = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Write Markdown there, for a pull request.", metavar="FILE")
    ] = None,
) -> None:
    """Compare A with B: A - B in every metric, with interval, p values, and flipped answers."""
    from evalake.decisions.compare import compare_sides
    from evalake.reports.files import markdown_of_comparison

    style = options.style_of(style, as_json=json)
    if run and tag:
        raise UsageError("give --run or --tag, not both")
    where = options.open_lake(lake)
    compared = compare_sides(where, a, b, run_id=run, tag=tag, metric=metric, force=force, corrected=corrected)
    if markdown is not None:
        write_text(markdown, markdown_of_comparison(compared.rows, compared.remarks))
    for remark in compared.remarks:
        say(remark)
    if style is options.Format.table:
        _print_compared(compared.rows)
        # The slices of a headline metric, or of another metric
        sliced = compared.headline[:2][-1] if metric is None else None
        again = command("compare", a, b, metric=sliced, lake=lake, run=run, tag=tag)
        typer.echo(f"{'in slices' if sliced else 'all metrics'}: {again}")
    else:
        show.rows(compared.rows, style)


def _print_compared(compared: pl.DataFrame) -> None:
    """Print a table for each pair of models and judge."""
    from evalake.reports.wording import lacking

    for (a, b, judge), rows in compared.group_by("a", "b", "judge", maintain_order=True):
        judged = "" if judge is None else f"\njudge {judge}"
        first, other = (lacking(rows.select(name).max().item()) for name in ("missing_a", "missing_b"))
        show.paragraph(f"A {a}{first}\nB {b}{other}{judged}")
        typer.echo()
        for line in _lines(rows.to_dicts(), show.console(show.PLAIN_TEXT_WIDTH).width):
            typer.echo(line)
        typer.echo()
    typer.echo("A-B: difference and 95 % interval. p: adjusted by Holm for all rows.")
    typer.echo("flips: units that A answers better : units that B does.")


def _lines(rows: Sequence[dict[str, Any]], width: int) -> Iterator[str]:
    """Write a line for each metric and slice; the numbers after a long name are on the next line."""
    cells = [HEADINGS, *map(_cells, rows)]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    heading, *numbers = (_aligned(each, sizes) for each in cells)
    names = [_name(row) for row in rows]
    room = max(0, min(max(map(cell_len, names)), width - len(heading)))
    yield f"{'metric':<{room}}{heading}"
    last = None
    for row, name, behind in zip(rows, names, numbers, strict=True):
        if row["slice"] != "all" and row["metric"] != last:
            yield row["metric"]
        last = row["metric"]
        if cell_len(name) > room:
            yield name
            name = ""
        yield f"{set_cell_size(name, room)}{behind}"


def _aligned(cells: Sequence[str], sizes: Sequence[int]) -> str:
    return "".join(f"{cell:>{GAP + size}}" for cell, size in zip(cells, sizes, strict=True))


def _name(row: dict[str, Any]) -> str:
    from evalake.reports.wording import one_line

    return one_line(row["metric"] if row["slice"] == "all" else f"  {row['slice']} {row['slice_value']}", LONGEST_NAME)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    from evalake.reports.wording import p_value

    flips = "–" if row["flips_to_a"] is None else f"{row['flips_to_a']}:{row['flips_to_b']}"
    values = (_number(row["value_a"]), _number(row["value_b"]), _difference(row), p_value(row["p_holm"]))
    return (*values, str(row["units"]), flips)


def _difference(row: dict[str, Any]) -> str:
    if row["ci_low"] is None or row["ci_high"] is None:
        return _number(row["difference"], sign="+")
    ends = (_number(row[name], sign="+") for name in ("ci_low", "ci_high"))
    return f"{_number(row['difference'], sign='+')} [{' '.join(ends)}]"


def _number(value: float | None, sign: str = "") -> str:
    if value is None:
        return "–"
    return f"{value:{sign}.3f}" if abs(value) < 10 else f"{value:{sign}.4g}"


@app.command("explain")
def explain(
    a: Annotated[str, typer.Argument(help="A run, a snapshot, RUN:MODEL, or a model of a run.", metavar="A")],
    b: options.OtherSide,
    metric: options.DecidingMetric = None,
    rows: Annotated[str | None, typer.Option(help="List the result rows of a part.", metavar="PART")] = None,
    run: options.RunOfModels = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """Split A - B into samples, replies, judge, code and repeats; the parts sum up to it."""
    from evalake.decisions.explain import Part
    from evalake.decisions.explain import explain as split

    style = options.style_of(style, as_json=json)
    if rows is not None and rows not in list(Part):
        raise UsageError(f"a difference has no part {rows}: choose one of {', '.join(Part)}")
    explained = split(options.open_lake(lake), a, b, run_id=run, metric=metric)
    if rows is not None:
        behind = explained.rows.filter(pl.col("part") == rows)
        if style is options.Format.table:
            behind = behind.with_columns(pl.col("prompt_hash").str.slice(0, 12))
        show.listing(f"rows behind {rows}", behind, lake, style, LISTED)
    elif style is options.Format.table:
        _print_parts(explained.parts)
        behind = explained.parts.filter(explained.parts["samples"] > 0)
        for part in behind["part"].unique(maintain_order=True):
            typer.echo(f"rows: {command('explain', a, b, metric=metric, lake=lake, run=run, rows=part)}")
    else:
        show.rows(explained.parts, style)


def _print_parts(parts: pl.DataFrame) -> None:
    """Print both values, the difference and its parts for each pair of models and judge."""
    for number, ((a, b, judge), own) in enumerate(parts.group_by("a", "b", "judge", maintain_order=True)):
        first = own.row(0, named=True)
        if number or judge is not None:
            show.paragraph("" if judge is None else f"judge {judge}")
        show.paragraph(f"A {a}: {first['metric']} {first['value_a']:.4g}")
        show.paragraph(f"B {b}: {first['metric']} {first['value_b']:.4g}")
        show.paragraph(f"A-B      {first['difference']:+.4f}")
        for row in own.iter_rows(named=True):
            samples = f": {row['samples']:,}" if row["samples"] else ""
            show.paragraph(f"  {row['part']:<8} {_contribution(row):<24} {row['meaning']}{samples}")


def _contribution(row: dict[str, Any]) -> str:
    value, low, high = row["contribution"], row["ci_low"], row["ci_high"]
    return f"{value:+.4f}" + (f" [{low:+.3f} {high:+.3f}]" if low is not None and row["samples"] else "")


@app.command("power")
def power(
    suite: Annotated[str, typer.Argument(help="The suite.", metavar="SUITE")],
    detect: Annotated[float, typer.Option(help="The difference of two models to find.", metavar="NUMBER")],
    metric: options.DecidingMetric = None,
    chance: Annotated[
        float, typer.Option("--power", help="The chance to find a difference of that size.", metavar="SHARE")
    ] = 0.8,
    sd: Annotated[
        float | None,
        typer.Option(help="Assume this standard deviation of a sample's difference.", metavar="NUMBER"),
    ] = None,
    lake: options.Lake = options.LAKE,
    style: options.Style = options.Format.table,
    json: options.RowsAsJson = False,
) -> None:
    """Plan samples and repeats from the variance in the lake's newest run of two models."""
    from evalake.decisions.sample_size import plan

    style = options.style_of(style, as_json=json)
    planned = plan(options.open_lake(lake), suite, detect, metric=metric, power=chance, sd=sd)
    if style is not options.Format.table:
        for line in (f"assumed: {planned.assumed}", *planned.notes):
            say(line)
        show.rows(planned.rows, style)
        return
    promise = f"found with {100 * chance:g} % power, at a two-sided level of 5 %, on the same samples"
    show.paragraph(f"{planned.suite}, {planned.metric}: a difference of {detect:g} between two models, {promise}")
    show.paragraph(f"assumed: {planned.assumed}")
    show.table(planned.rows)
    for note in planned.notes:
        show.paragraph(note)


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
        _print_checks(held)
        changes = (check for check in held.checks if check.difference is not None)
        if held.baseline is not None and any(check.decision.verdict != "PASS" for check in changes):
            typer.echo(f"see: {command('compare', held.run, held.baseline, lake=lake)}")
    else:
        for note in held.notes:
            say(note)
        show.rows(_gate_rows(held), style)
    if held.exit_code:
        raise typer.Exit(held.exit_code)


def _gate_rows(held: "Gate") -> pl.DataFrame:
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


def _print_checks(held: "Gate") -> None:
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
        checks = _gate_rows(last.gate).to_dicts()
        show.as_json({**decided, "checks": checks, "notes": last.gate.notes, "promise": PROMISE})
        return
    _print_checks(last.gate)
    show.paragraph(PROMISE)
    left = most - last.samples
    show.paragraph(f"stopped: {last.stopped}" + (f"; {left:,} of {most:,} samples were not asked" if left else ""))
