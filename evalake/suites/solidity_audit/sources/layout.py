"""Today's layout of BlockBench: what a file is by the folders that it lies in, and what tools and rules say in it.

    samples/ds/TIER/{ground_truth,metadata,contracts}/SAMPLE.*       also gs/ and tc/VARIANT/
    results/detection/llm/MODEL/ds/TIER/d_SAMPLE.json                audits
    results/detection/traditional/TOOL/ds/TIER/…/p_SAMPLE.json       a tool's findings
    results/detection_evaluation/llm-judge/JUDGE/MODEL/ds/TIER/j_SAMPLE.json
    results/detection_evaluation/rule-based/traditional/TOOL/ds/TIER/e_SAMPLE.json

In place of `ds/TIER` stand `gs/PROMPT` and `tc/VARIANT`. A summary begins with `_` in the folder that it is about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

EVALUATION, DETECTION = "detectionevaluation", "detection"  # as `folder_name` has them
SECTIONS = ("ds", "gs", "tc")
RULES = "rule-based"
"""The judge by whose name the results of rules are kept."""

SLITHER, MYTHRIL = "slither", "mythril"

_OF = "(ds/TIER|gs/PROMPT|tc/VARIANT)"
JUDGEMENT_PLACE = f"detection_evaluation/llm-judge/JUDGE/MODEL/{_OF}/j_SAMPLE.json"
RULES_PLACE = f"detection_evaluation/rule-based/traditional/TOOL/{_OF}/e_SAMPLE.json"
AUDIT_PLACE = f"detection/(llm|traditional)/MODEL/{_OF}/d_SAMPLE.json"
TRUTH_PLACE = "ground_truth/SAMPLE.json"
MISPLACED = f"not in its place: {JUDGEMENT_PLACE}, {RULES_PLACE} or {AUDIT_PLACE} is expected"
NO_ROUND = (
    "no round was found: JUDGE/MODEL/judge_outputs/j_SAMPLE.json, expert_reviews/MODEL/r_SAMPLE.json, "
    f"{JUDGEMENT_PLACE} or {RULES_PLACE} is expected, with {TRUTH_PLACE}"
)

Kind = Literal["judgement", "rules", "audit", "summary"]
_PREFIXES: Mapping[str, Kind] = {"j_": "judgement", "e_": "rules", "d_": "audit", "p_": "audit"}


@dataclass(frozen=True, slots=True)
class Place:
    """What the folders say of a file: what it is, whose it is, and the part of the benchmark that it is about."""

    kind: Kind
    judge: str | None
    model: str
    section: tuple[str, ...]

    @property
    def prompt_type(self) -> str | None:
        """The prompt type, which names the folder of a gold-standard result."""
        return self.section[1] if self.section[0] == "gs" and len(self.section) > 1 else None

    @property
    def variant(self) -> str | None:
        """The tier or variant of the samples; None in the gold standard, whose folders are prompts."""
        return None if self.section[0] == "gs" or len(self.section) < 2 else self.section[1]


def is_result(folders: Sequence[str]) -> bool:
    """Tell whether a file in these folders, reduced by `folder_name`, is one of today's results."""
    return EVALUATION in folders or any(
        one == DETECTION and other in ("llm", "traditional") for one, other in pairwise(folders)
    )


def place_of(parts: Sequence[str], folders: Sequence[str]) -> Place | None:
    """Read the place of a file by its path's parts, the name last; None where it lies in no place that is known.

    Args:
        parts: The names as they are.
        folders: The folders' names, reduced by `folder_name`.
    """
    name, of_judge = parts[-1], EVALUATION in folders
    start = folders.index(EVALUATION if of_judge else DETECTION) + 1
    by = folders[start] if start < len(folders) else None
    named = 3 if of_judge else 2  # folders up to and with the model's
    section = tuple(parts[start + named : -1])
    if by not in (("llmjudge", "rulebased") if of_judge else ("llm", "traditional")) or len(folders) < start + named:
        return None
    if not section or section[0].casefold() not in SECTIONS:
        return None
    kind: Kind | None = "summary" if name.startswith("_") else _PREFIXES.get(name[:2].casefold())
    expected: Mapping[str | None, tuple[Kind, ...]] = {
        "llmjudge": ("judgement", "summary"),
        "rulebased": ("rules", "summary"),
    }
    if kind is None or kind not in expected.get(by, ("audit", "summary")):
        return None
    judge = None if not of_judge else parts[start + 1] if by == "llmjudge" else RULES
    return Place(kind, judge, parts[start + named - 1], (section[0].casefold(), *section[1:]))


def tool_of(value: Any) -> str | None:
    """Tell by its form which tool wrote a file; None for any other."""
    if isinstance(value, list):
        return MYTHRIL if value and all(isinstance(each, Mapping) and "issues" in each for each in value) else None
    if not isinstance(value, Mapping) or "success" not in value:
        return None
    results = value.get("results")
    if isinstance(results, Mapping) and (not results or {"detectors", "upgradeability-check"} & results.keys()):
        return SLITHER
    return MYTHRIL if isinstance(value.get("issues"), list) else None


def of_rules(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add to what rules found the judgement that it is. They count findings without a class: none is listed."""
    evaluation, truth, about = (_part(value, name) for name in ("evaluation", "ground_truth", "metadata"))
    correct, is_vulnerable = evaluation.get("detection_verdict_correct"), truth.get("is_vulnerable")
    is_known = isinstance(correct, bool) and isinstance(is_vulnerable, bool)
    judgement: dict[str, Any] = {
        "overall_verdict": {
            "said_vulnerable": correct == is_vulnerable if is_known else None,
            "confidence_expressed": None,
        },
        "target_assessment": {"found": evaluation.get("target_vulnerability_found")},
        "findings": [],
        "unlisted": True,
        "notes": about.get("reasoning"),
    }
    return {**value, **judgement, **({"error": "the tool timed out"} if about.get("timeout") is True else {})}


def of_tool(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add to a tool's output the audit that it is."""
    return {**value, "prediction": {**value}, "latency_ms": value.get("execution_time_ms")}


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}
