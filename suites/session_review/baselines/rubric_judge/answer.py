"""The rubric judge's answers, in the form that the prompt demands: the review, its repetition, the missing tools."""

import re
from collections.abc import Sequence

from providers.baselines import Messages
from suites.session_review.baselines.rubric_judge.record import Record, read_record
from suites.session_review.baselines.rubric_judge.rules import CATEGORIES, Deduction, deducted, find, never_called

BEST = 21  # of 25: rules cannot see what would deserve more
SECOND_TURN = "MISSING TOOLS"

_ABOUT = {
    "Logical flow": "Looked at: the order of the calls, repetitions of calls with equal arguments, how many of them "
    "brought evidence before the conclusion, and whether the session came to its end by itself.",
    "Consistency": "Looked at: whether names and figures of the final analysis occur in any result, whether its "
    "wording fits the number of useful results, and whether failures are owned up to.",
    "Tool relevance": "Looked at: which of the available tools were never called although they gather evidence, what "
    "was tried after a failure, and whether files that results name were opened.",
    "Synthesis quality": "Looked at: the length of the final analysis, whether it weighs other explanations, states "
    "its limits, recommends something, and takes up what the results had shown.",
}

# What a session is about, the tools that would show it, and the tool to wish for where there is none
_WISHES = (
    (r"memory|oom", r"metric|memory|prometheus|query", "memory-usage-history",
     "shows how memory grew before the alert"),
    (r"deploy|rollout|release|version", r"deploy|rollout|release|history|change|diff", "deployment-history",
     "shows what was changed shortly before the alert"),
    (r"crash|exception|error rate|5xx", r"log", "log-search", "shows what the failing process wrote itself"),
    (r"timeout|latency|connection|dns|network", r"trace|network|probe|dns|connect|metric", "network-probe",
     "tells an unreachable peer from a slow one"),
    (r"certificate|tls|x509", r"cert|tls", "certificate-inspector", "shows validity and chain of what is served"),
    (r"login|credential|unauthori|privilege|intrusion", r"audit|auth|login", "audit-log-search",
     "shows who did what, from where and when"),
)  # fmt: skip


def judge(messages: Messages) -> str:
    """Write the next answer in a conversation about one session; the same messages always give the same answer.

    Raises BaselineRefusedError where the first user message holds no session to judge.
    """
    record = read_record(messages)
    asked = [message["content"] for message in messages if message["role"] == "user"]
    if len(asked) > 1 and asked[-1].lstrip().startswith(SECOND_TURN):
        return _missing_tools(record)
    findings = find(record)
    review = [] if len(asked) > 1 else [_opening(record), *(_part(category, findings) for category in CATEGORIES)]
    return "\n\n".join((*review, _total(findings)))


def _total(findings: Sequence[Deduction]) -> str:
    lost = deducted(findings)
    points = {category: max(0, BEST - lost[category]) for category in CATEGORIES}
    breakdown = "\n".join(f"{category}: {points[category]}/25" for category in CATEGORIES)
    return f"{breakdown}\n\n{sum(points.values())}"


def _opening(record: Record) -> str:
    failed = sum(call.failed for call in record.calls)
    return (
        "This review was made by rules. They count and compare what the record shows, and understand nothing of it. "
        f"The session ended as {record.status}. Its agents made {len(record.calls)} calls of tools; {failed} of them "
        f"failed, {len(record.useful)} brought something. There were {len(set(record.tools))} tools to choose from. "
        f"The final analysis has {len(record.final_analysis.split())} words. Each category starts from {BEST} of 25 "
        "points, for rules cannot see what would deserve more, and loses what is listed under it."
    )


def _part(category: str, findings: Sequence[Deduction]) -> str:
    own = [finding for finding in findings if finding.category == category]
    tags = [f" ({each.tag})" if each.tag else "" for each in own]
    lines = [f"- Deduction: {each.points} points, for {each.text}{tag}." for each, tag in zip(own, tags, strict=True)]
    return "\n".join((f"## {category}", "", _ABOUT[category], *(lines or ["- No deduction: the rules found nothing."])))


def _missing_tools(record: Record) -> str:
    """List the tools never called, and tools to wish for where no available one covers the topic of the alert."""
    about = record.alert.casefold()
    available = "\n".join(record.tools).casefold()
    unused = [f"**{name}**: it was available, gathers evidence, and was never called." for name in never_called(record)]
    wishes = [
        f"**{name}**: it {benefit}; none of the available tools does."
        for topic, tools, name, benefit in _WISHES
        if re.search(topic, about) and not re.search(tools, available)
    ]
    if not unused and not wishes:
        return "No critical tools were missing."
    lists = {"Should have been used": unused, "Do not exist": wishes, "Could be improved": []}
    return "\n\n".join(f"## {heading}\n\n{_numbered(items)}" for heading, items in lists.items())


def _numbered(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1)) or "None."
