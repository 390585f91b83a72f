"""`evalake gate`: checks a run against rules, alone or with a baseline, for build servers and people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalake.cli.configuration import command
from evalake.cli.options import LAKE, CorrectedOption, Format, LakeOption, RowsAsJsonOption, StyleOption, style_of
from evalake.cli.terminal import say, write_text
from evalake.core.errors import LakeError

if TYPE_CHECKING:
    import polars as pl

    from evalake.reports.gate import Gate


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
        typer.Option("--baseline", help="The baseline of rules about changes, in the form of RUN.", metavar="REF"),
    ] = None,
    junit: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML there.", metavar="FILE")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write Markdown there.", metavar="FILE")] = None,
    lake: LakeOption = LAKE,
    style: StyleOption = Format.table,
    json: RowsAsJsonOption = False,
    force: Annotated[
        bool, typer.Option("--force", help="Compare results that are not comparable, and print why they are not.")
    ] = False,
    adjust: Annotated[
        bool, typer.Option("--adjust", help="Hold all level rules together to the error of one (Bonferroni).")
    ] = False,
    corrected: CorrectedOption = False,
) -> None:
    """Check a run against rules; each model must pass each rule with each judge.

    Exits with 0 where all pass, 1 where any fails, 3 where nothing fails but something is undecided, 2 on wrong usage.
    """
    from evalake.cli import output as show
    from evalake.decisions.gate import hold_gate
    from evalake.decisions.rules import keep
    from evalake.reports.gate import as_junit, as_markdown
    from evalake.storage.lake import Lake

    style = style_of(style, as_json=json)

    held = hold_gate(Lake(lake), run, rule, baseline=baseline, force=force, adjust=adjust, corrected=corrected)
    try:
        keep(Lake(lake), held)
    except LakeError as error:
        say(f"the decisions are not kept in the lake's history of gates: {error}")
    for path, text in ((junit, as_junit(held)), (markdown, as_markdown(held))):
        if path is not None:
            write_text(path, text)
    if style is Format.table:
        print_checks(held)
        _print_next_step(held, lake)
    else:
        for note in held.notes:
            say(note)
        show.rows(rows_of(held), style)
    if held.exit_code:
        raise typer.Exit(held.exit_code)


def rows_of(held: "Gate") -> "pl.DataFrame":
    """Convert the verdicts to rows."""
    import polars as pl

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
    from rich.text import Text

    from evalake.cli import output as show

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


def _print_next_step(held: "Gate", lake: str) -> None:
    """Suggest a comparison for each failed rule about a change."""
    changed = [check for check in held.checks if check.difference is not None and check.decision.verdict != "PASS"]
    if not changed or held.baseline is None:
        return
    typer.echo(f"see: {command('compare', held.run, held.baseline, lake=lake)}")
