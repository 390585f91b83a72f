"""How often models are right against how sure they said they were: a line a model."""

from reports.axes import error_bars, hover, layout, left_out, names, quantity_axis, safe
from reports.drawing import MUTED, Drawing, Key, colour
from reports.report import Report, Subject, Value
from suites.base.figures import Reliability

MOST_LINES = 6
"""The best so many models are drawn; the table has all."""


def draw_reliability(report: Report, figure: Reliability) -> Drawing:
    """Draw accuracy against mean confidence in each tenth, one line a model; the diagonal is perfect calibration."""
    import plotly.graph_objects as go

    alt = f"{figure.accuracy.label} against {figure.confidence.label}, one line a model."
    parts = report.slice_values(figure.accuracy, figure.slice)
    lines = {subject: _points(report, figure, subject, parts) for subject in _most_judged(report, figure)}
    known = {subject: points for subject, points in lines.items() if points}
    missing = [subject for subject in lines if subject not in known]
    notes = [left_out(figure.confidence.label, missing, list(lines))]
    if not known:
        return Drawing.of(None, alt, notes)
    if len(known) > MOST_LINES:
        notes.append(f"Drawn: the best {MOST_LINES} of {len(known)} models.")
    plot = go.Figure(layout=layout(360))
    line = {"color": MUTED, "width": 1.2, "dash": "dot"}
    plot.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, hoverinfo="skip")
    shown = list(known)[:MOST_LINES]
    key = [Key(name, colour(k)) for k, name in enumerate(names([Subject(s.model) for s in shown]))]
    for subject, entry in zip(shown, key, strict=True):
        points = known[subject]
        plot.add_scatter(
            x=[confidence.value for _, confidence, _ in points],
            y=[accuracy.value for _, _, accuracy in points],
            mode="lines+markers",
            name=safe(entry.text),
            line={"color": entry.colour, "width": 1.5},
            marker={
                "color": entry.colour,
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
    sure = quantity_axis(figure.confidence, (-0.02, 1.05)) | {"title": {"text": safe(figure.confidence.label)}}
    plot.update_xaxes(**sure)
    plot.update_yaxes(**quantity_axis(figure.accuracy, (-0.02, 1.05)))
    return Drawing.of(plot, alt, notes, key=tuple(key))


def _most_judged(report: Report, figure: Reliability) -> list[Subject]:
    """Choose for each model, best first, the judge of most of its answers: lines of further judges would repeat it."""
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
