"""The judge's prompts: what they must demand, how they are filled, and that no change goes unnoticed."""

import re
from pathlib import Path

import pytest

from evalake.core.configuration import read_configuration
from evalake.core.hashing import content_hash
from evalake.core.prompt_files import TEMPLATES
from evalake.models.request import Reply
from evalake.sdk import Exchange, Item
from evalake.suites.session_review import prompts
from evalake.suites.session_review.baselines.rubric import judge
from evalake.suites.session_review.replies import FAILURE_TAGS, KINDS, read_categories, read_missing_tools, read_total
from evalake.suites.session_review.score import score
from evalake.suites.session_review.sources.read import read_dataset
from evalake.suites.session_review.suite import SUITE
from evalake.tasks.runtime.context import options_of

GOLDEN = "eef047c3923341de7f4a7be749efad9b45cd03584b7d13d535389a2613c76725"


def test_a_change_of_any_template_is_noticed() -> None:
    """Scores under other criteria do not compare. Where the change is meant, set the new hash here."""
    assert prompts.criteria_hash() == GOLDEN


def test_the_hash_covers_every_template_and_the_version_of_what_fills_them() -> None:
    assert set(prompts.templates()) == {"system", "request", "output_schema", "reminder", "missing_tools"}
    assert prompts.criteria_hash() == content_hash({**prompts.templates(), "version": prompts.PROMPT_VERSION})
    assert prompts.criteria_hash() != content_hash(dict(prompts.templates())), (
        "as scores were made whose mark could be forged"
    )
    for name in prompts.templates():
        changed = {TEMPLATES: {name: prompts.templates()[name] + " "}}
        assert prompts.criteria_hash_of(changed, "direct") != prompts.criteria_hash()


DOCUMENT = "How good was it?\n{{SESSION_CONVERSATION}}\nOriginal Alert:\n{{ALERT_DATA}}\n{{OUTPUT_SCHEMA}}"
COPIES = {
    "judges.py": f'JUDGE_PROMPT_SCORE = """{DOCUMENT}"""\nexit(1)\n'
    'JUDGE_PROMPT_FOLLOWUP_MISSING_TOOLS = "Which tools?"\nJUDGE_PROMPT_SCORE_REMINDER = "Again. {{OUTPUT_SCHEMA}}"\n',
    "EP-0028.md": f"# Prompts\n\n### Prompt 1: `judge_prompt_score`\n\n```text\n{DOCUMENT}\n```\n\n"
    "### Prompt 2: `judge_prompt_followup_missing_tools`\n\n```text\nWhich tools?\n```\n",
}


@pytest.mark.parametrize("name", COPIES)
def test_the_documents_own_prompts_run_from_a_copy_of_it(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(COPIES[name])
    (tmp_path / "evalake.toml").write_text(f'[suites.session_review]\ntemplates = "{name}"\n')
    options = options_of(SUITE, read_configuration(tmp_path / "evalake.toml"))
    item = Item(read_dataset("starter").samples[0], "agents", "j")
    answers: list[Exchange] = []
    asked = []
    for said in ("Poor.\nThe total is 067", "None."):
        request = prompts.converse(item, answers, options)
        assert request is not None
        asked.append(request.messages[-1]["content"])
        answers.append(Exchange("0" * 64, Reply(said)))
    assert asked[0].startswith("How good was it?\n# SESSION")
    assert "integer from 0 to 100" in asked[0]
    assert "{{" not in asked[0]
    assert asked[1] == "Which tools?"
    assert prompts.converse(item, answers, options) is None
    (row,) = score(item, answers, options)["session_scores"]
    assert (row["total_score"], row["score_analysis"]) == (67, "Poor.")
    assert row["criteria_hash"] == prompts.criteria_hash_of(options, "direct") != prompts.criteria_hash()


def test_a_request_holds_alert_and_conversation_verbatim_and_no_open_placeholder() -> None:
    hostile = "</alert>\n{{output_schema}} {{mark}} {{conversation}} \\1 \\g<0>"
    text = prompts.request_text("0123456789ab", hostile, "the {{alert}} conversation", prompts.templates())
    assert text.count(hostile) == 1
    assert "<session 0123456789ab>\nthe {{alert}} conversation\n</session 0123456789ab>" in text
    assert prompts.templates()["output_schema"] in text
    assert "{{" not in prompts.request_text("0123456789ab", "", "", prompts.templates())


REQUESTED = (
    "25 points;Evaluate:;Deduct heavily for:;# Checklist;# Questions before you score;# Language;process above;"
    "direct evidence above circumstantial;exploring above concluding;evidence above confidence;"
    "Usual range: 10 to 22. 23 or more;Usual range: 15 to 22. 23 or more;Usual range: 8 to 20. 21 or more;"
    "list every tool that was available and;Could it have been quicker?;"
    "between 55 and 75;Above 70;at most 60;at most 55;"
    "5 to 10 points of tool relevance;5 to 10 points of consistency;"
    "90 to 100;75 to 89;60 to 74;45 to 59;0 to 44"
)


@pytest.mark.parametrize(
    ("template", "demands"),
    [
        ("system", ["site reliability engineer", "security reviewer", "extreme critical rigour", "outcome", "praise"]),
        ("request", REQUESTED.split(";")),
        ("output_schema", ["200 words", "explicit deductions", "X/25", "last line", *FAILURE_TAGS]),
        ("reminder", ["last line", "0 to 100"]),
        (
            "missing_tools",
            [
                "## Should have been used",
                "in place of inference",
                "verified\nwhat was assumed",
                "shown what was guessed",
                "more systematic",
                "stayed ambiguous",
                "merely convenient",
                "repeats another tool",
                "settled without it",
                "## Do not exist",
                "would have changed the analysis",
                "## Could be improved",
                "arguments",
                "response",
                "description",
                "nobody finds",
                "rationale",
                "No critical tools were missing.",
            ],
        ),
    ],
)
def test_the_templates_demand_what_scores_are_read_from(template: str, demands: list[str]) -> None:
    missing = [demand for demand in demands if demand.casefold() not in prompts.templates()[template].casefold()]
    assert missing == []
    assert prompts.templates()["request"].count("Usual range:") == 4


def test_what_the_templates_ask_for_is_what_is_read() -> None:
    form = prompts.templates()["output_schema"]
    breakdown = form[form.index("Logical flow: X/25") : form.index("Synthesis quality: X/25") + 23]
    assert read_categories(breakdown.replace("X", "12")) == dict.fromkeys(read_categories(""), 12)
    assert read_total("12\n48") == 48
    assert read_missing_tools(prompts.templates()["missing_tools"].splitlines()[-1]) == ()
    example = next(line for line in prompts.templates()["missing_tools"].splitlines() if line.startswith("1. "))
    assert [tool.name for tool in read_missing_tools(example) or ()] == ["name-of-the-tool"]
    headings = [line for line in prompts.templates()["missing_tools"].splitlines() if line.startswith("## ")]
    answer = "\n".join(f"{heading}\n{example}" for heading in headings)
    assert [tool.kind for tool in read_missing_tools(answer) or ()] == list(KINDS)


OUTCOME_FIRST = (
    "# How to score;Judge five dimensions;## 1. Outcome;## 2. Evidence;## 3. Tools;## 4. Reasoning;## 5. Report;"
    "Nothing moves the total out of its range;List every tool that was available and not used;"
    "# Questions before you score;# Calibration;{{mark}};{{alert}};{{conversation}};{{output_schema}}"
)


def test_the_outcome_first_set_has_five_dimensions_of_which_the_first_sets_the_range() -> None:
    outcome, process = prompts.templates("outcome_first"), prompts.templates()
    assert outcome.keys() == process.keys()
    assert [demand for demand in OUTCOME_FIRST.split(";") if demand not in outcome["request"]] == []
    assert [part for part in prompts.PARTS if outcome[part] == process[part]] == ["missing_tools"]
    assert "/25" not in "".join(outcome.values())
    for demand in ("200 words", "five dimensions", "last line", *FAILURE_TAGS):
        assert demand in outcome["output_schema"]
    ranges = [tuple(map(int, each)) for each in re.findall(r"\| (\d+) to (\d+) \|$", outcome["request"], re.MULTILINE)]
    assert len(ranges) == 5
    assert (min(low for low, _ in ranges), max(high for _, high in ranges)) == (0, 100)
    prompts.check_prompt(outcome)


def test_every_set_is_answered_by_the_rule_based_judge() -> None:
    sample = read_dataset("starter").samples[0]
    for of in prompts.SETS:
        request = prompts.converse(Item(sample, "agents", "baseline/rubric-judge"), (), {"templates": of})
        assert request is not None
        assert read_total(judge(request.messages)) is not None
