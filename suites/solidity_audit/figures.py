"""What reports on solidity_audit show: the seven tiers, plots, tables and mistakes, declared."""

from suites.base.figures import (
    AgreementMatrix,
    Answers,
    Bars,
    ByJudge,
    Figure,
    HeatMap,
    Quantity,
    Ranking,
    Reliability,
    Scatter,
    Unit,
)
from suites.solidity_audit.mistakes import MISTAKE, TOLD, tell
from suites.solidity_audit.taxonomy import CLASSIFICATIONS

SUI = Quantity("sui", "security understanding")
TARGETS = Quantity("target_detection_rate", "targets found")
ACCURACY = Quantity("accuracy", "accuracy")
F2 = Quantity("f2", "F2")
PRECISION = Quantity("finding_precision", "valid findings")
HALLUCINATED = Quantity("hallucination_rate", "hallucinated findings", higher_is_better=False)
ECE = Quantity("ece", "calibration error", higher_is_better=False)
LUCKY = Quantity("lucky_guess_rate", "lucky guesses", higher_is_better=False)
COST = Quantity("cost_usd_total", "cost in all", Unit.US_DOLLARS, higher_is_better=False)
SHARES = tuple(
    Quantity(f"{name.lower()}_share", name.lower().replace("_", " "), higher_is_better=index < 3)
    for index, name in enumerate(CLASSIFICATIONS)
)
REASONING = tuple(
    Quantity(f"mean_{name}", label)
    for name, label in (("rcir", "root cause"), ("ava", "attack vector"), ("fsv", "suggested fix"))
)

FIGURES: tuple[Figure, ...] = (
    Ranking(
        "Seven tiers",
        SUI,
        (F2, TARGETS, PRECISION, *REASONING, Quantity("exact_match_rate", "exact type"), ECE),
        note="One tier after the other: is the verdict right, is it right for the known reason, are the findings real, "
        "is the reasoning sound, is the type named, is the confidence earned, and all of it together.",
    ),
    Bars(
        "Right verdicts against targets found",
        (ACCURACY, TARGETS),
        note="What accuracy has beyond the targets is luck: a contract rightly called vulnerable for another reason.",
    ),
    Bars("Lucky guesses, of the true positives", (LUCKY,)),
    Scatter("Targets found against valid findings", TARGETS, PRECISION),
    Bars("Findings by class, of all findings", SHARES, stacked=True),
    Bars("Reasoning about found targets", REASONING),
    Reliability(
        "Reliability: how often right, against how sure",
        ACCURACY,
        Quantity("mean_confidence", "stated confidence"),
        "confidence_bin",
        note="On the dotted line a model is as often right as it says; below it, it is overconfident.",
    ),
    Bars("Calibration error", (ECE, Quantity("ece_adaptive", "in bins of equal mass", higher_is_better=False))),
    HeatMap("Targets found by type", TARGETS, "vulnerability_type"),
    HeatMap("Targets found by difficulty", TARGETS, "difficulty_tier"),
    HeatMap("Targets found by prompt", TARGETS, "prompt_type", of_several=True),
    AgreementMatrix(
        "Agreement of judges on targets found (Cohen's kappa)",
        Quantity("cohen_kappa", "kappa", Unit.SCORE),
        "judge_pair",
    ),
    ByJudge(
        "Hallucinated findings by judge",
        HALLUCINATED,
        note="The same audits, each judge's word: where the bars of one model differ, the judge is the property.",
    ),
    Scatter("Cost against score", COST, SUI, pareto=True),
)

ANSWERS = Answers(
    correct="detection_correct",
    mistake=MISTAKE,
    label="is_vulnerable",
    sample=("sample_hash", "judge", "prompt_type", "replicate"),
    group="mistake",
    shown=(
        ("sample_id", "sample"),
        ("vulnerability_type", "type"),
        ("said_vulnerable", "called vulnerable"),
        ("confidence", "confidence"),
        ("target_found", "target found"),
        ("contract_excerpt", "contract"),
        ("reply_start", "audit"),
        ("judge_words", "the judge's words"),
    ),
    reply_of=MISTAKE,
    reply_length=600,
    tell=tell,
    told=TOLD,
)
