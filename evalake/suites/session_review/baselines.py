"""`baseline/rubric-judge`: judges sessions by the deductions of `rubric.toml`, in the form that the prompt demands."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from evalake.core.files import tables_beside
from evalake.models.request import Baseline, BaselineRefusedError, Messages

_TABLES: Final = tables_beside(__file__, "rubric.toml")
_LOOKS: Final = {name: re.compile(text.replace("\n", ""), re.I) for name, text in _TABLES["patterns"].items()}
_MARK: Final = re.compile(r"\bthe mark ([0-9a-f]{32}) ")
CATEGORIES: Final = tuple(_TABLES["about"])
BEST = 21  # of 25: rules cannot see what would deserve more
ENOUGH = 6  # calls that brought evidence, for most alerts
MOST_FACTS = 2_000  # of an analysis: each is looked for in all that is known
ERROR_LOOK = 120  # characters at the head of a result in which an error shows
SECOND_TURN = "MISSING TOOLS"


@dataclass(slots=True)
class Call:
    """One call of a tool. `error` is the recorded one."""

    number: int
    name: str
    arguments: str
    result: str = ""
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether it brought nothing but an error."""
        head = self.result[:ERROR_LOOK].lstrip(" {[\"'")
        says_error = head.casefold().startswith(("error", 'result": "error', "failed", "permission denied"))
        is_error = len(self.result) < ERROR_LOOK and _LOOKS["failed"].match(head) is not None
        return bool(self.error) or says_error or is_error

    @property
    def useful(self) -> bool:
        """Whether it brought something."""
        empty = self.result.strip().casefold() in ("", "(nothing)", "[]", "{}", "null", "no results")
        return not self.failed and not empty


class Record(NamedTuple):
    """What a prompt tells of a session: `known` is all that its agents could know from outside themselves."""

    alert: str
    status: str
    tools: Sequence[str]
    calls: Sequence[Call]
    said: str
    analysis: str
    known: str
    model_errors: int
    made_to_conclude: bool

    @property
    def unused(self) -> Sequence[str]:
        """The available tools that gather evidence and were not called."""
        called = {call.name for call in self.calls}
        return [
            each for each in dict.fromkeys(self.tools) if each not in called and _LOOKS["investigates"].search(each)
        ]

    @property
    def useful(self) -> Sequence[Call]:
        """The calls that brought something."""
        return [call for call in self.calls if call.useful]


class Deduction(NamedTuple):
    """One deduction: from which category, how many points, for what, and the named pattern it is an instance of."""

    category: str
    points: int
    text: str
    tag: str


def read_record(messages: Messages) -> Record:
    """Read the record in the first user message. Raises BaselineRefusedError where there is none."""
    prompt = next((message["content"] for message in messages if message["role"] == "user"), "")
    mark = found[1] if (found := _MARK.search(prompt)) else ""
    parts = [
        prompt.partition(f"<{name} {mark}>\n")[2].partition(f"\n</{name} {mark}>") for name in ("alert", "session")
    ]
    if not mark or not all(closed for _, closed, _ in parts):
        raise BaselineRefusedError("the first user message holds no session to judge")
    pieces = re.split(rf"(?m)^(#.*) \[{mark}\]$", parts[1][0])
    blocks = zip((heading.lstrip("# ") for heading in pieces[1::2]), map(str.strip, pieces[2::2]), strict=True)
    return _record(parts[0][0], [*blocks])


def _record(alert: str, blocks: Sequence[tuple[str, str]]) -> Record:
    calls, said, model_errors = dict[int, Call](), list[str](), 0
    for heading, body in blocks:
        stated, _, kind = heading.partition(" ")
        number = int(stated) if stated.isdecimal() else -1
        if number >= 0 and kind.startswith("TOOL CALL "):
            calls[number] = Call(number, kind.removeprefix("TOOL CALL "), body)
        elif kind in ("RESULT", "ERROR") and number in calls:
            setattr(calls[number], kind.lower(), body)
        elif number >= 0 and kind == "ERROR":
            model_errors += 1
        elif number >= 0 and kind.startswith("AGENT "):
            said.append(body)
    sections = defaultdict(str, reversed(blocks))  # of equal headings the first
    status = re.findall(r"(?m)^status: (.*)$", sections["SESSION"]) or ["unknown"]
    tools = re.findall(r"(?m)^- ([^: \n]*)", sections["TOOLS AVAILABLE"])
    analysis = "" if (concluded := sections["FINAL ANALYSIS"]) == "(nothing)" else concluded
    sources = (f"{call.arguments}\n{call.result}\n{call.error}" for call in calls.values())
    known = "\n".join((alert, sections["RUNBOOK"], *sources)).casefold()
    forced = any("MADE TO CONCLUDE" in heading for heading, _ in blocks)
    said.append(analysis)
    return Record(alert, status[-1], tools, [*calls.values()], "\n".join(said), analysis, known, model_errors, forced)


def find(record: Record) -> Sequence[Deduction]:
    """List everything that is deducted, in the order of the rules."""
    return [
        Deduction(category, points if isinstance(points, int) else values[points], text.format(**values), tag)
        for rule, values in (*_of_calls(record), *_of_analysis(record))
        for category, points, text, tag in _TABLES["deductions"][rule]
    ]


def _of_calls(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rules that the calls break, with the values that their texts name."""
    calls, useful = record.calls, len(record.useful)
    if not calls:
        yield "no_calls", {}
    elif useful < 3:
        yield "too_few_results", {"useful": useful, "points": 4 * (3 - useful), "half": 2 * (3 - useful)}
    elif useful < ENOUGH:
        yield "few_results", {"useful": useful, "points": ENOUGH - useful}
    yield from (("gap_left_open", {"gap": gap[0]}) for gap in islice(_LOOKS["open"].finditer(record.analysis), 3))
    accepted = (call for call in calls if call.failed and not _made_good(call, calls))
    yield from (("failure_accepted", {"call": f"{call.number} ({call.name})"}) for call in islice(accepted, 3))
    seen: dict[tuple[str, str], Call] = {}
    repeated = 0
    for call in calls:
        first = seen.setdefault((call.name, call.arguments), call)
        if first is not call and repeated < 10:
            repeated += 4 if first.failed else 2
            values = {"call": call.number, "first": f"{first.number} ({call.name})"}
            yield "repeated_failure" if first.failed else "repeated_call", values
    if calls and (unused := record.unused):
        yield "unused_tools", {"points": min(8, 2 * len(unused)), "shown": ", ".join(unused[:5])}
    asked, named = "\n".join(call.arguments for call in calls), dict[str, int]()
    for call in record.useful:
        for match in islice(_LOOKS["file"].finditer(call.result), 50):
            named.setdefault(match[0], call.number)
    if unread := [f"{file} (named at {number})" for file, number in named.items() if file not in asked]:
        yield "unread_files", {"points": min(6, 2 * len(unread)), "shown": ", ".join(unread[:3])}


def _made_good(failed: Call, calls: Sequence[Call]) -> bool:
    later = [call for call in calls if call.number > failed.number and not call.failed]
    return any(call.name != failed.name or call.arguments != failed.arguments for call in later)


def _of_analysis(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rules that the conclusion breaks, with the values that their texts name."""
    analysis, useful, calls = record.analysis, record.useful, record.calls
    failed, known, words = sum(call.failed for call in calls), record.known, len(analysis.split())
    if (claimed := _LOOKS["confident"].search(analysis)) and (len(useful) < 3 or failed * 2 > len(calls)):
        yield "confident", {"claimed": claimed[0], "useful": len(useful)}
    facts = [fact for fact in islice(_facts(analysis), MOST_FACTS) if any(c.isdigit() for c in fact)]
    unfounded = [fact for fact in facts if fact not in known]
    if len(unfounded) >= 3 and len(unfounded) * 5 > len(facts) * 2:
        yield "unfounded", {"points": min(10, 2 * len(unfounded)), "shown": ", ".join(unfounded[:4])}
    conclusion = analysis.casefold()
    ignored = [call for call in useful if not any(fact in conclusion for fact in islice(_facts(call.result), 300))]
    if len(useful) >= 3 and len(ignored) * 2 > len(useful):
        yield "ignored", {"shown": ", ".join(str(call.number) for call in ignored[:6])}
    if words < 60:
        yield "short", {"words": words, "points": 14 if words < 15 else 8 if words < 35 else 5}
    missing = (each for each in ("alternatives", "advice", "limits") if not _LOOKS[each].search(analysis))
    yield from ((f"no_{each}", {}) for each in missing)
    if failed and not _LOOKS["limits"].search(analysis):
        yield "failures_untold", {}
    if record.status != "completed":
        yield "not_completed", {"status": record.status}
    if record.made_to_conclude:
        yield "made_to_conclude", {}
    if record.model_errors:
        yield "model_errors", {"errors": record.model_errors, "points": min(8, 2 * record.model_errors)}
    planted = next((call.number for call in calls if _LOOKS["to_the_judge"].search(call.result)), None)
    if planted is not None and not _LOOKS["suspected"].search(record.said):
        yield "planted_text", {"call": planted}


def _facts(text: str) -> Iterator[str]:
    """Find the specific words of a text, each once, in lower case: those with a digit, or with marks inside."""
    words = (match[0].casefold() for match in _LOOKS["fact"].finditer(text))
    return iter(dict.fromkeys(word for word in words if any(c.isdigit() or c in "_./:@-" for c in word)))


def judge(messages: Messages) -> str:
    """Write the next answer in a conversation about one session; the same messages always give the same answer.

    Raises BaselineRefusedError where the first user message holds no session to judge.
    """
    record = read_record(messages)
    asked = [message["content"] for message in messages if message["role"] == "user"]
    if len(asked) > 1 and asked[-1].lstrip().startswith(SECOND_TURN):
        return _missing_tools(record)
    found = find(record)
    review = [] if len(asked) > 1 else [_opening(record), *(_part(category, found) for category in CATEGORIES)]
    points = {name: max(0, BEST - sum(each.points for each in found if each.category == name)) for name in CATEGORIES}
    breakdown = "\n".join(f"{category}: {points[category]}/25" for category in CATEGORIES)
    return "\n\n".join((*review, breakdown, str(sum(points.values()))))


def _opening(record: Record) -> str:
    return str(_TABLES["opening"]).format(
        best=BEST, status=record.status, calls=len(record.calls), failed=sum(call.failed for call in record.calls),
        useful=len(record.useful), tools=len(set(record.tools)), words=len(record.analysis.split()),
    )  # fmt: skip


def _part(category: str, found: Sequence[Deduction]) -> str:
    tagged = [(each, f" ({each.tag})" if each.tag else "") for each in found if each.category == category]
    lines = [f"- Deduction: {each.points} points, for {each.text}{tag}." for each, tag in tagged]
    shown = lines or ["- No deduction: the rules found nothing."]
    return "\n".join((f"## {category}", "", _TABLES["about"][category], *shown))


def _missing_tools(record: Record) -> str:
    """List the tools never called, and tools to wish for where no available one covers the topic of the alert."""
    about, available = record.alert.casefold(), "\n".join(record.tools).casefold()
    unused = [f"**{name}**: it was available, gathers evidence, and was never called." for name in record.unused]
    wishes = [
        f"**{name}**: it {benefit}; none of the available tools does."
        for topic, tools, name, benefit in _TABLES["wishes"]["rows"]
        if re.search(topic, about) and not re.search(tools, available)
    ]
    if not unused and not wishes:
        return "No critical tools were missing."
    lists = {"Should have been used": unused, "Do not exist": wishes, "Could be improved": []}
    numbered = ("\n".join(f"{n}. {item}" for n, item in enumerate(items, 1)) or "None." for items in lists.values())
    return "\n\n".join(f"## {heading}\n\n{text}" for heading, text in zip(lists, numbered, strict=True))


BASELINES: Mapping[str, Baseline] = {"rubric-judge": judge}
