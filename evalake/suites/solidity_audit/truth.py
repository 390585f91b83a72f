"""The ground truth of a contract, as a sample's target holds it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

import polars as pl
from pydantic import Field, model_validator

from evalake.core.errors import ConfigurationError
from evalake.core.files import tables_beside
from evalake.core.hashing import canonical_json
from evalake.sdk import Index, Sample
from evalake.sdk.results import Strict
from evalake.sdk.sources import is_storable

# The words of the suite: what a finding can be, how a type can match, how severe and how hard a vulnerability is.


Classification = Literal[
    "TARGET_MATCH",
    "PARTIAL_MATCH",
    "BONUS_VALID",
    "HALLUCINATED",
    "MISCHARACTERIZED",
    "DESIGN_CHOICE",
    "OUT_OF_SCOPE",
    "SECURITY_THEATER",
    "INFORMATIONAL",
]
TypeMatch = Literal["exact", "semantic", "partial", "wrong", "not_mentioned"]
Severity = Literal["critical", "high", "medium", "low"]

SCORES: Mapping[str, str] = {
    "rcir": "root_cause_identification",
    "ava": "attack_vector_validity",
    "fsv": "fix_suggestion_validity",
}
"""The reasoning scores: their columns, and their names in a judgement."""
MATCHES = ("root_cause_match", "location_match")
"""What recorded judgements say of a target beside its type."""

TYPE_MATCHES: tuple[str, ...] = get_args(TypeMatch)
CLASSIFICATIONS: tuple[str, ...] = get_args(Classification)
VALID: tuple[str, ...] = CLASSIFICATIONS[:3]
INVALID: tuple[str, ...] = CLASSIFICATIONS[3:]
TARGET, PARTIAL, BONUS = VALID
SEVERITIES: tuple[str, ...] = get_args(Severity)

_WEIGHTS = tables_beside(__file__, "weights.toml")
SEVERITY_WEIGHTS: Mapping[str, float] = _WEIGHTS["severity"]
INVALID_COSTS: Mapping[str, float] = _WEIGHTS["invalid"]


KNOWLEDGE = "knowledge"
"""The prompt type that asks what a model remembers of a contract; its replies are no audits."""
CHAIN_OF_THOUGHT, PROTOCOL_CONTEXT = "chain_of_thought", "protocol_context"
BOTH = f"{PROTOCOL_CONTEXT}_{CHAIN_OF_THOUGHT}"
PROMPT_TYPES = ("direct", "naturalistic", "adversarial", CHAIN_OF_THOUGHT, PROTOCOL_CONTEXT, BOTH, KNOWLEDGE)
STRUCTURED = ("direct", CHAIN_OF_THOUGHT, PROTOCOL_CONTEXT, BOTH)
"""Prompt types whose audits have a form, so that findings are numbered by their place in it."""


def count_column(classification: str) -> str:
    """Name the column of the results that counts the findings of a classification."""
    return f"{classification.lower()}_findings"


def normalised(name: str) -> str:
    """Normalise a type or severity as tables hold it: lower case, words joined by underscores."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


SUITE = "solidity_audit"

Text = Annotated[str, Field(max_length=100_000)]
Line = Annotated[int, Field(ge=1, lt=2**31)]


class GroundTruth(Strict):
    """What is known of a contract: whether it is vulnerable, and how, where and why, as far as anybody said."""

    is_vulnerable: bool
    vulnerability_type: Text | None = None
    severity: Text | None = None
    vulnerable_functions: list[Text] = Field(default_factory=list)
    vulnerable_lines: list[Line] = Field(default_factory=list)
    difficulty_tier: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    root_cause: Text | None = None
    attack_scenario: Text | None = None
    fix: Text | None = None
    base: Text | None = None  # the sample that this one was made of; its own name where others are made of it
    transformation: Text | None = None  # how it was made; null or `original` for a base
    incident: Text | None = None  # the name by which the public knows the exploit
    code_act: Text | None = None  # what the first statement at the root does, by the annotators' taxonomy

    @model_validator(mode="after")
    def _check(self) -> Self:
        texts = (self.vulnerability_type, self.severity, *self.vulnerable_functions)
        texts += (self.base, self.transformation, self.incident, self.code_act)
        if not all(is_storable(text) for text in (*texts, self.root_cause, self.attack_scenario, self.fix) if text):
            raise ValueError("a text that cannot be stored (half a surrogate pair, or NUL)")
        return self

    @property
    def flaw(self) -> str | None:
        """Why this is not enough to ask a judge about the contract, or None; recorded judgements need less."""
        if self.is_vulnerable and not normalised(self.vulnerability_type or ""):
            return "a vulnerable contract needs a vulnerability_type"
        if not self.is_vulnerable and (self.vulnerability_type or self.vulnerable_functions or self.vulnerable_lines):
            return "a safe contract has no vulnerability_type, vulnerable_functions or vulnerable_lines"
        texts = (self.severity, *self.vulnerable_functions, self.root_cause, self.attack_scenario, self.fix)
        return "a text is blank; leave it out" if "" in texts else None


def as_sample(
    dataset: str, sample_id: str, contract: str, truth: GroundTruth, cluster: str, note: str | None
) -> Sample:
    """Build the sample of a contract. Type and severity are normalised, so that slices do not split on spelling."""
    kind = normalised(truth.vulnerability_type or "") or None
    severity = normalised(truth.severity or "") or None
    how = normalised(truth.transformation or "") or None
    known = truth.model_copy(update={"vulnerability_type": kind, "severity": severity, "transformation": how})
    return Sample(
        SUITE,
        dataset,
        sample_id,
        contract,
        target=canonical_json(_stated(known)).decode(),
        label=label_of(truth.is_vulnerable),
        category=kind,
        severity=severity,
        difficulty=None if truth.difficulty_tier is None else str(truth.difficulty_tier),
        cluster=cluster,
        note=note,
    )


LATER = ("base", "transformation", "incident", "code_act")
"""Fields that samples got later: without them, a sample is the one it was."""


def _stated(truth: GroundTruth) -> dict[str, Any]:
    return {name: value for name, value in truth.model_dump().items() if name not in LATER or value is not None}


def label_of(is_vulnerable: bool) -> str:
    """Name the class of a contract."""
    return "vulnerable" if is_vulnerable else "safe"


def truth_of(sample: Sample) -> GroundTruth:
    """Read the ground truth that a sample was made with."""
    return GroundTruth.model_validate_json(sample.target or "")


# The suite's section of the configuration: weights of SUI, weight sets that test its ranking, panels.


COMPONENTS = ("f2", "target_detection_rate", "finding_precision", "avg_reasoning", "calibration")
FEWEST_SETS = 5

Weights = Mapping[str, float]


DEFAULTS: Mapping[str, Any] = {
    "sui_weights": _WEIGHTS["sui"]["weights"],
    "sui_weight_sets": _WEIGHTS["sui"]["sets"],
    # What calibration counts in SUI where no confidence was stated: a number, or "left_out" to share out its weight.
    "sui_calibration_unstated": 0.5,
    # How the answers of a panel's judges become the panel's: MAJORITY where nothing is said, STRICT or DAWID_SKENE.
    "aggregation": None,
    # The judges that form the panel: all of a run where nothing is said, or a list of names.
    "panel": None,
    # Degrees of freedom that the deviations of reasoning scores take off: 0 where nothing is said, or 1.
    "std_ddof": None,
}
MAJORITY, STRICT, DAWID_SKENE = "majority", "strict", "dawid_skene"
WAYS = (MAJORITY, STRICT, DAWID_SKENE)

BLOCKBENCH = "blockbench"
"""In place of weights: those of BlockBench."""


def sui_weights(options: Mapping[str, Any]) -> dict[str, float]:
    """Read the weights of SUI's components. Raises ConfigurationError where they are not valid."""
    given = options["sui_weights"]
    return _checked("sui_weights", _WEIGHTS[BLOCKBENCH]["weights"] if given == BLOCKBENCH else given)


def sui_weight_sets(options: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Read the weight sets of `sui_rank_stability`. Raises ConfigurationError where they are too few or not valid."""
    given = options["sui_weight_sets"]
    sets = _WEIGHTS[BLOCKBENCH]["sets"] if given == BLOCKBENCH else given
    if not isinstance(sets, Mapping) or len(sets) < FEWEST_SETS:
        raise ConfigurationError(f"solidity_audit.sui_weight_sets must name at least {FEWEST_SETS} sets of weights")
    return {str(name): _checked(f"sui_weight_sets.{name}", weights) for name, weights in sets.items()}


def calibration_unstated(options: Mapping[str, Any]) -> float | None:
    """Read the value of calibration in SUI where no confidence was stated; None where it is left out."""
    given = options["sui_calibration_unstated"]
    if given == "left_out":
        return None
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ConfigurationError('solidity_audit.sui_calibration_unstated must be 0 to 1, or "left_out"')
    return float(given)


def aggregation(options: Mapping[str, Any]) -> str:
    """Read how the answers of a panel's judges become the panel's. Raises ConfigurationError for an unknown way."""
    given = options.get("aggregation") or MAJORITY
    if given not in WAYS:
        raise ConfigurationError(f"solidity_audit.aggregation must be one of {', '.join(WAYS)}; it is {given!r}")
    return str(given)


def in_panel(options: Mapping[str, Any], judge: pl.Expr) -> pl.Expr:
    """Tell of judges whether they belong to a run's panel. Raises ConfigurationError where it is no list of judges."""
    given = options.get("panel")
    if given is None:
        return pl.lit(True)
    if not isinstance(given, list | tuple) or len({*map(str, given)}) < 2:
        raise ConfigurationError(f"solidity_audit.panel must be a list of two or more judges; it is {given!r}")
    return judge.is_in([str(name) for name in given])


def std_ddof(options: Mapping[str, Any]) -> int:
    """Read the degrees of freedom that deviations take off. Raises ConfigurationError where it is neither 0 nor 1."""
    given = options.get("std_ddof") or 0
    if isinstance(given, bool) or given not in (0, 1):
        raise ConfigurationError(f"solidity_audit.std_ddof must be 0 or 1; it is {given!r}")
    return int(given)


def _checked(where: str, given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping) or set(given) != set(COMPONENTS):
        raise ConfigurationError(f"solidity_audit.{where} must give a weight to each of {', '.join(COMPONENTS)}")
    numbers = all(not isinstance(w, bool) and isinstance(w, int | float) and 0 <= w < 1e6 for w in given.values())
    if not numbers or sum(given.values()) <= 0:
        raise ConfigurationError(f"solidity_audit.{where} must be weights of 0 or more, not all of them 0")
    return {name: float(given[name]) for name in COMPONENTS}


# The parts of SUI as a snapshot has them, so that its weights can be fitted to people's ranking of models.


REASONING = ("mean_rcir", "mean_ava", "mean_fsv")


def components(metrics: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """Compute a model's parts of SUI from its metrics by name; None where a part is undefined."""
    ece = metrics.get("ece")
    return {
        "f2": metrics.get("f2"),
        "target_detection_rate": metrics.get("target_detection_rate"),
        "finding_precision": metrics.get("finding_precision"),
        "avg_reasoning": _reasoning(metrics),
        "calibration": None if ece is None else 1 - ece,
    }


def _reasoning(metrics: Mapping[str, float | None]) -> float | None:
    """Average the defined means; 0 where vulnerable samples exist and the target was found in none."""
    defined = [value for name in REASONING if (value := metrics.get(name)) is not None]
    if defined:
        return sum(defined) / len(defined)
    return 0.0 if metrics.get("target_detection_rate") == 0 else None


INDEX = Index(components, sui_weights)


# The result rows of an auditor that gives every contract the same verdict, with confidence 1 and no finding.


def always(*, vulnerable: bool) -> Mapping[str, pl.Expr]:
    """Build the columns that SUI reads, as any judge would fill them in: there is nothing to judge but the verdict."""
    truth = pl.col("is_vulnerable")
    audited = pl.when(pl.col("prompt_type") != KNOWLEDGE)
    return {
        "said_vulnerable": audited.then(pl.lit(vulnerable)),
        "confidence": audited.then(pl.lit(1.0)),
        "detection_correct": audited.then(truth if vulnerable else ~truth),
        "target_found": audited.then(pl.when(truth).then(False)),
        **dict.fromkeys(("total_findings", "valid_findings", "invalid_findings"), pl.lit(0, pl.Int64)),
        **dict.fromkeys(("rcir", "ava", "fsv"), pl.lit(None, pl.Float64)),
    }
