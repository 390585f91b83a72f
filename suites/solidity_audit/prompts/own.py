"""What a prompt of one's own may say, of the subject and of its judge."""

from suites.base.own_prompts import EXAMPLES

RUBRIC = "rubric"
"""In which order a judge decides a class, and what each level of a score asks for."""

PARTS = ("system", "user", EXAMPLES, RUBRIC)
"""The system text, the question before the contract, worked examples; and the judge's rubric."""
