"""`baseline/rubric-judge`: scores an investigation by rules, the bar that judge models must beat.

It reads the record from the prompt by headings that carry the session's mark, which nothing in a session can imitate,
and takes all other text for data: no instruction in it is followed. Do not use it to judge people's work: it counts and
compares, and understands nothing.
"""

from suites.session_review.baselines.rubric_judge.answer import judge

__all__ = ["judge"]
