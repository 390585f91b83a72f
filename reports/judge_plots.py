"""Drawings of what confidence and judgement are worth: reliability, agreement of judges, one quantity by judge."""

from reports.axes import MUTED, drawn, error_bars, hover, layout, left_out, names, quantity_axis, rows_axis, safe
from reports.plots import BAD_TO_GOOD, COLOURS, HATCHED, Drawing
from reports.report import Report, Subject, Value
from reports.wording import UNRELIABLE, number, short_names
from suites.figures import AgreementMatrix, ByJudge, Reliability

MOST_LINES = 6
"""A reliability diagram shows the best so many models; its table has all."""

MATRICES_A_ROW = 4


def draw_reliability(report: Report, figure: Reliability) -> Drawing:
    """Accuracy against mean confidence in each tenth, one line a model; the diagonal is perfect calibration."""
    import plotly.graph_objects as go

    alt = f"{figure.accuracy.label} against {figure.confidence.label}, one line a model."
    parts = report.slice_values(figure.accuracy, figure.slice)
    lines = {subject: _points(report, figure, subject, parts) for subject in _most_judged(report, figure)}
    known = {subject: points for subject, points in lines.items() if points}
    notes = [left_out(figure.confidence.label, [subject for subject in lines if subject not in known])]
    if not known:
        return Drawing(None, alt, tuple(filter(None, notes)))
    if len(known) > MOST_LINES:
        notes.append(f"Drawn: the best {MOST_LINES} of {len(known)} models.")
    plot = go.Figure(layout=layout(440))
    line = {"color": MUTED, "width": 1.2, "dash": "dot"}
    plot.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip", showlegend=False)
    shown = list(known)[:MOST_LINES]
    for k, (subject, name) in enumerate(zip(shown, names([Subject(s.model) for s in shown]), strict=True)):
        points, colour = known[subject], COLOURS[k % len(COLOURS)]
        plot.add_scatter(
            x=[confidence.value for _, confidence, _ in points],
            y=[accuracy.value for _, _, accuracy in points],
            mode="lines+markers",
            name=safe(name),
            line={"color": colour, "width": 1.5},
            marker={
                "color": colour,
                "size": [7 + 3 * min(len(str(accuracy.n)), 4) for _, _, accuracy in points],
                "symbol": ["circle-open" if accuracy.doubtful else "circle" for _, _, accuracy in points],
            },
            error_y=error_bars([accuracy for _, _, accuracy in points]),
            hoverinfo="text",
            hovertext=[
                hover(subject, ((figure.confidence, confidence), (figure.accuracy, accuracy)), part)
                for part, confidence, accuracy in points
            ],
        )
    plot.update_xaxes(**quantity_axis(figure.confidence, (-0.02, 1.05)))
    plot.update_yaxes(**quantity_axis(figure.accuracy, (-0.02, 1.05)))
    return Drawing(plot, alt, tuple(filter(None, notes)))


def _most_judged(report: Report, figure: Reliability) -> list[Subject]:
    """Of each model, best first, the judge by whom most of its answers were judged: lines that repeat say nothing."""
    chosen: dict[str, Subject] = {}
    for subject in report.subjects:
        best = chosen.setdefault(subject.model, subject)
        if report.value(subject, figure.accuracy).n > report.value(best, figure.accuracy).n:
            chosen[subject.model] = subject
    return list(chosen.values())


def _points(report: Report, figure: Reliability, subject: Subject, parts: list[str]) -> list[tuple[str, Value, Value]]:
    points = []
    for part in parts:
        confidence, accuracy = (
            report.value(subject, q, figure.slice, part) for q in (figure.confidence, figure.accuracy)
        )
        if confidence.value is not None and accuracy.value is not None:
            points.append((part, confidence, accuracy))
    return points


def draw_agreement(report: Report, figure: AgreementMatrix) -> Drawing:
    """A matrix of judges by judges for every model, all in one row as far as they fit."""
    from plotly.subplots import make_subplots

    alt = f"{figure.quantity.label} of every pair of judges, one matrix a model."
    found = report.agreement(figure)
    if not any(value.value is not None for pairs in found.values() for value in pairs.values()):
        return Drawing(None, alt, ("There is no pair of judges to compare, or nothing that varies between them.",))
    judges = sorted({judge for pairs in found.values() for pair in pairs for judge in pair})
    across = min(MATRICES_A_ROW, len(found))
    down = -(-len(found) // across)
    titles = [safe(name) for name in short_names([subject.model for subject in found], 26)]
    plot = make_subplots(
        rows=down,
        cols=across,
        subplot_titles=titles,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=min(0.5 / down, 0.14),
    )
    side = 34 + 22 * len(judges)
    plot.update_layout(**layout(60 + down * (side + 70)) | {"margin": {"l": 28, "r": 12, "t": 30, "b": 30}})
    for place, pairs in enumerate(found.values()):
        cells = [[pairs.get((a, b)) or pairs.get((b, a)) or Value() for b in judges] for a in judges]
        plot.add_heatmap(
            z=[[cell.value for cell in row] for row in cells],
            x=list(range(len(judges))),
            y=list(range(len(judges))),
            zmin=0.0,
            zmax=1.0,
            colorscale=BAD_TO_GOOD,
            showscale=False,
            xgap=2,
            ygap=2,
            text=[[_cell(cell, figure) for cell in row] for row in cells],
            texttemplate="%{text}",
            textfont={"size": 11},
            hoverinfo="text",
            hovertext=[
                [f"{safe(a)} and {safe(b)}: {_cell(c, figure)}, n = {c.n:,}" for b, c in zip(judges, row, strict=True)]
                for a, row in zip(judges, cells, strict=True)
            ],
            row=place // across + 1,
            col=place % across + 1,
        )
    numbers = [str(k) for k in range(1, len(judges) + 1)]
    ticks = {"tickvals": list(range(len(judges))), "ticktext": numbers, "showgrid": False, "zeroline": False}
    plot.update_xaxes(**ticks, fixedrange=True)
    plot.update_yaxes(**ticks, fixedrange=True, range=[len(judges) - 0.5, -0.5])
    plot.update_annotations(font_size=12)
    legend = "Judges: " + ", ".join(f"{k} {judge}" for k, judge in zip(numbers, judges, strict=True)) + "."
    return Drawing(plot, alt, (legend,), least_width=80 + across * max(110, 40 * len(judges)), wide=across > 2)


def _cell(value: Value, figure: AgreementMatrix) -> str:
    if value.value is None:
        return "no variation" if value.n else ""
    return number(value.value, figure.quantity.unit) + UNRELIABLE * value.doubtful


def draw_by_judge(report: Report, figure: ByJudge) -> Drawing:
    """Horizontal bars, a group a model and a colour a judge."""
    import plotly.graph_objects as go

    quantity = figure.quantity
    alt = f"{quantity.label} of every model, by judge."
    judges = report.judges(quantity)
    if not judges:
        return Drawing(None, alt, ("Unknown for every model.",))
    models = [Subject(model) for model in report.models]
    thickness = 0.8 / len(judges)
    plot = go.Figure(layout=layout(100 + max(34, 15 * len(judges) + 12) * len(models)))
    ends: list[float] = []
    for k, judge in enumerate(judges):
        values = [drawn(report.value(Subject(model.model, judge), quantity), quantity) for model in models]
        rows = [i + (k - (len(judges) - 1) / 2) * thickness for i in range(len(models))]
        ends += [end for value in values for end in (value.value, value.ci_high) if end is not None]
        plot.add_bar(
            orientation="h",
            y=rows,
            x=[value.value for value in values],
            width=thickness * 0.88,
            name=safe(judge or "by rules"),
            marker={"color": COLOURS[k % len(COLOURS)], "pattern": {"shape": [HATCHED * v.doubtful for v in values]}},
            error_x=error_bars(values),
            hoverinfo="text",
            hovertext=[
                hover(Subject(model.model, judge), [(quantity, value)])
                for model, value in zip(models, values, strict=True)
            ],
        )
        plot.add_scatter(
            y=rows,
            x=[value.ci_high or value.value or 0.0 for value in values],
            mode="text",
            text=[
                "" if v.value is None else f"  {number(v.value, quantity.unit)}{UNRELIABLE * v.doubtful}"
                for v in values
            ],
            textposition="middle right",
            textfont={"size": 10},
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    plot.update_layout(barmode="overlay")
    plot.update_xaxes(**quantity_axis(quantity, (0.0, (max(ends) or 0.1) * 1.22)) | {"title": None})
    plot.update_yaxes(**rows_axis(models))
    return Drawing(plot, alt)
