"""Scorers of the suite: each is given the answer, the target and all columns of the sample."""

LONGEST = 60  # words


def brief(answer: str, target: object, row: dict[str, object]) -> tuple[bool, str]:
    """Find an answer right that is no longer than a customer reads."""
    words = len(answer.split())
    return words <= LONGEST, f"{words} words"
