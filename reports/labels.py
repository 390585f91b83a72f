"""Where the names of points go, so that they overlap neither each other nor the edge nor another point."""

from collections.abc import Iterator, Sequence

Box = tuple[float, float, float, float]  # left, bottom, right, top; shares of the plot

CHARACTER, LINE, MARKER = 0.023, 0.05, 0.03
"""Width of a character, height of a line and radius of a marker, as shares of a plot on a telephone."""

_SIDES = (  # diagonal ones first: error bars run straight
    ("top right", 1, 1), ("bottom right", 1, -1), ("top left", -1, 1), ("bottom left", -1, -1),
    ("middle right", 1, 0), ("middle left", -1, 0), ("top center", 0, 1), ("bottom center", 0, -1),
)  # fmt: skip


def place_labels(points: Sequence[tuple[float, float]], lengths: Sequence[int]) -> tuple[list[str], bool]:
    """Choose Plotly's text position for the label of each point (in shares of the axes), of so many characters.

    Returns also whether it is too crowded for labels of that length: some overlap, or reach over the edge.
    """
    taken: list[Box] = [(x - MARKER, y - LINE / 2, x + MARKER, y + LINE / 2) for x, y in points]
    chosen, crowded = [], False
    for i, ((x, y), length) in enumerate(zip(points, lengths, strict=True)):
        others = taken[:i] + taken[i + 1 :]
        costs = [
            (sum(_overlap(box, other) for other in others) + 5 * _outside(box), order, side, box)
            for order, (side, box) in enumerate(_candidates(x, y, length))
        ]
        cost, _, side, box = min(costs)
        crowded |= cost > 0
        chosen.append(side)
        taken.append(box)
    return chosen, crowded


def _candidates(x: float, y: float, length: int) -> Iterator[tuple[str, Box]]:
    width = length * CHARACTER
    for side, right, up in _SIDES:
        middle = x + right * (MARKER + width / 2)
        height = y + up * LINE * (1 if right == 0 else 0.8)
        yield side, (middle - width / 2, height - LINE / 2, middle + width / 2, height + LINE / 2)


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _outside(box: Box) -> float:
    return max(0.0, -box[0]) + max(0.0, box[2] - 1) + max(0.0, -box[1]) + max(0.0, box[3] - 1)
