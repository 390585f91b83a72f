"""Today's TARSy, live: its API by URL, or the PostgreSQL behind it; both give the same bodies, session by session.

A poll reads only what is new. It lists sessions from its watermark on: the oldest session that was not over at the last
poll, else the newest of all.
"""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlsplit

from evalake.core.errors import SourceError
from evalake.core.files import LARGEST_FILE, tables_beside
from evalake.sdk import Label
from evalake.sdk.json_in_text import mapping, objects
from evalake.suites.session_review.session import Session
from evalake.suites.session_review.sources.database import Rows
from evalake.suites.session_review.sources.generic import RefusedError, decoded, microseconds, text
from evalake.suites.session_review.sources.generic import status as over
from evalake.suites.session_review.sources.tarsy_trace import Bodies, read_bodies

if TYPE_CHECKING:
    import httpx

TOKEN_VARIABLE = "TARSY_API_TOKEN"
PATH = "/api/v1"
PAGE = 100  # sessions, the most that TARSy lists at once
AT_ONCE = 8  # calls of a session that are fetched side by side
PATIENCE_SECONDS = 60.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Body = Mapping[str, Any]


@dataclass
class Poll:
    """What polls of a source have read, so that the next one reads what is new.

    Attributes:
        known: When sessions ended that are there already, by id; these are not read again.
        since: The watermark: from when on sessions are listed; None lists all.
    """

    known: Mapping[str, int | None] = field(default_factory=dict)
    since: str | None = None


class Product(Protocol):
    """A running TARSy."""

    def listed(self, since: str | None) -> Iterator[Body]:
        """Yield sessions as TARSy lists them, from the oldest to the newest."""

    def bodies(self, session_id: str) -> Bodies:
        """Collect the bodies of a session. Raises RefusedError where they cannot be had."""


Found = tuple[Body, Session | RefusedError | None]
"""A session as it is listed, with what it is; None for one that the poll knows."""


def read_product(product: Product, poll: Poll) -> Iterator[Found]:
    """Yield the sessions of a product that are new to a poll, and move its watermark at the end."""
    newest: list[tuple[int, str]] = []
    again: list[tuple[int, str]] = []
    for item in product.listed(poll.since):
        session_id, created = text(item.get("id")) or "", text(item.get("created_at"))
        at = [(microseconds(created) or 0, created)] if created is not None else []
        newest = max(newest, at)
        ended = microseconds(item.get("completed_at"))
        if ended is not None and session_id in poll.known and poll.known[session_id] == ended:
            yield item, None
            continue
        try:
            over(item.get("status"))
            yield item, read_bodies(product.bodies(session_id))
        except RefusedError as refused:
            if refused.by_design or refused.passing:
                again = min(again or at, at)
            yield item, refused
    watermark = again or newest
    poll.since = watermark[0][1] if watermark else poll.since


# What TARSy knows of how good its sessions are: the score of its own judge, and the ratings of its reviewers.

TARSY = "TARSy"
TARSY_SCORE, QUALITY = "tarsy_score", "quality_rating"  # questions
QUALITIES = ("inaccurate", "partially_accurate", "accurate")
UNNAMED = "unnamed reviewer"


def labels_of(item: Body) -> list[Label]:
    """Read TARSy's own score of a session and its reviewer's rating, with the feedback, where there are any."""
    labels, session_id = list[Label](), text(item.get("id"))
    score, total = mapping(item.get("score")), item.get("latest_score")
    total = score.get("total_score") if total is None else total
    if session_id is None:
        return []
    if isinstance(total, int | float) and not isinstance(total, bool) and 0 <= total <= 100:
        at = _time(score.get("completed_at"))
        labels.append(Label(session_id, TARSY, TARSY_SCORE, float(total), at, text(score.get("score_analysis"))))
    if (rating := item.get("quality_rating")) in QUALITIES:
        who = text(item.get("feedback_edited_by")) or text(item.get("assignee")) or UNNAMED
        at = _time(item.get("feedback_edited_at")) or _time(item.get("reviewed_at"))
        said = [text(item.get(name)) for name in ("investigation_feedback", "action_taken")]
        labels.append(Label(session_id, who, QUALITY, rating, at, "\n\n".join(filter(None, said)) or None))
    return labels


def _time(value: Any) -> datetime | None:
    at = microseconds(value)
    return None if at is None else datetime.fromtimestamp(at / 1e6, UTC)


# The API.


@contextmanager
def open_api(url: str) -> Iterator["Api"]:
    """Open the API at a URL, with the token of TARSY_API_TOKEN. Raises SourceError where it does not answer as one."""
    import httpx

    require_api(url)
    token = os.environ.get(TOKEN_VARIABLE)
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    base = url.rstrip("/").removesuffix(PATH) + PATH
    with httpx.Client(base_url=base, headers=headers, timeout=PATIENCE_SECONDS) as client:
        yield Api(client)


def require_api(url: str) -> None:
    """Raise SourceError for a URL that holds a password, or that would show the token to listeners."""
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment or not parts.hostname:
        host = parts.hostname or "HOST"
        raise SourceError(
            f"the address of TARSy's API is like https://{host}, without a password: set {TOKEN_VARIABLE}"
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and os.environ.get(TOKEN_VARIABLE):
        raise SourceError(
            f"http://{parts.hostname} would carry the token of {TOKEN_VARIABLE} in the open: use https://"
        )


def api_name(url: str) -> str:
    """Name the dataset of an API, by its host."""
    return urlsplit(url).hostname or "sessions"


@dataclass
class Api:
    """TARSy's API; each answer is read up to a limit, and no answer sends elsewhere."""

    client: "httpx.Client"

    def listed(self, since: str | None) -> Iterator[Body]:
        """Yield sessions as TARSy lists them, page by page."""
        page, pages = 1, 1
        while page <= pages:
            asked = {"page": page, "page_size": PAGE, "sort_by": "created_at", "sort_order": "asc"}
            try:
                body = mapping(self._get("/sessions", **asked, **({"start_date": since} if since else {})))
            except RefusedError as refused:
                raise SourceError(f"{self.client.base_url} cannot be read: {refused.reason}") from refused
            if not isinstance(body.get("sessions"), list):
                raise SourceError(f"{self.client.base_url} does not answer as TARSy's API: it lists no `sessions`")
            yield from objects(body["sessions"])
            total = mapping(body.get("pagination")).get("total_pages")
            page, pages = page + 1, total if isinstance(total, int) else page

    def bodies(self, session_id: str) -> Bodies:
        """Fetch the bodies of a session."""
        path = f"/sessions/{quote(session_id, safe='')}"
        detail, listed = mapping(self._get(path)), _unscored(mapping(self._get(f"{path}/trace")))
        try:
            timeline = objects(self._get(f"{path}/timeline"))
        except RefusedError as refused:
            if refused.passing:
                raise
            timeline = []  # this TARSy has none
        wanted = [f"{path}/trace/{kind}/{quote(given, safe='')}" for kind, given in _calls_listed(listed)]
        with ThreadPoolExecutor(AT_ONCE) as threads:
            calls = [mapping(call) for call in threads.map(self._get, wanted)]
        return Bodies(detail, listed, calls, timeline)

    def _get(self, path: str, **asked: Any) -> Any:
        """Get the JSON at a path. Raises RefusedError for an answer without it, SourceError where nothing answers."""
        import httpx

        try:
            with self.client.stream("GET", path, params=asked or None) as answer:
                _require_answer(answer, self.client.base_url)
                content = bytearray()
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > LARGEST_FILE:
                        raise RefusedError("answer of TARSy's API too large")
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise SourceError(f"{self.client.base_url} does not answer: {reason}") from error
        found = decoded(content.decode("utf-8", "replace"))
        if isinstance(found, str):
            raise RefusedError("answer of TARSy's API is not JSON")
        return found


def _require_answer(answer: "httpx.Response", base: "httpx.URL") -> None:
    if answer.status_code in (401, 403):
        why = f"set {TOKEN_VARIABLE} to a bearer token that it takes"
        raise SourceError(f"{base} refuses to be read (HTTP {answer.status_code}): {why}")
    if answer.is_redirect:
        raise SourceError(
            f"{base} sends elsewhere (HTTP {answer.status_code}): give the address behind the log-in page"
        )
    if not answer.is_success:
        passing = answer.status_code >= 500 or answer.status_code == 429
        raise RefusedError(f"TARSy's API answered HTTP {answer.status_code}", passing=passing)


def _unscored(listed: Body) -> Body:
    """Leave out the stages in which TARSy scored the session: their calls hold all of it again."""
    return {**listed, "stages": [each for each in objects(listed.get("stages")) if each.get("stage_type") != "scoring"]}


def _calls_listed(listed: Body) -> Iterator[tuple[str, str]]:
    """Yield kind and id of every call in a list of calls."""
    holders = [
        listed,
        *(agent for stage in objects(listed.get("stages")) for agent in objects(stage.get("executions"))),
    ]
    while holders:
        holder = holders.pop(0)
        for name, kind in (("llm_interactions", "llm"), ("mcp_interactions", "mcp"), ("session_interactions", "llm")):
            yield from ((kind, given) for call in objects(holder.get(name)) if (given := text(call.get("id"))))
        holders += objects(holder.get("sub_agents"))


# The database.

_QUERIES: Final = tables_beside(__file__, "queries.toml")["today"]


def is_todays(rows: Rows) -> bool:
    """Tell whether a database is of today's TARSy, by its tables."""
    return bool(rows(_QUERIES["generation"], {}))


def mark(rows: Rows) -> Any:
    """Read what changes when sessions, scores or reviews do."""
    return [[str(value) for value in row.values()] for row in rows(_QUERIES["mark"], {})]


@dataclass
class Tables:
    """The tables of today's TARSy."""

    rows: Rows

    def listed(self, since: str | None) -> Iterator[Body]:
        """Yield all sessions: one query lists them, and a review may come late."""
        for row in self.rows(_QUERIES["sessions"], {}):
            score, item = mapping(decoded(row["score"])), mapping(decoded(row["body"]))
            scored = {"latest_score": score.get("total_score"), "score": score} if score else {}
            yield {**item, "id": item.get("session_id"), **scored}

    def bodies(self, session_id: str) -> Bodies:
        """Build the bodies of a session as the API does."""
        (detail,) = self._bodies("session", session_id)
        stages, agents = self._bodies("stages", session_id), self._bodies("agents", session_id)
        said, called = (self._bodies("calls", session_id, of) for of in ("llm_interactions", "mcp_interactions"))
        messages = _by(self._bodies("messages", session_id), "execution_id")
        said = [_with_conversation(call, messages.get(call.get("execution_id"), [])) for call in said]
        llm, mcp, sent = _by(said, "execution_id"), _by(called, "execution_id"), _by(agents, "parent_execution_id")

        def agent(of: Body) -> Body:
            given = of["execution_id"]
            calls = {"llm_interactions": llm.get(given, []), "mcp_interactions": mcp.get(given, [])}
            return {**of, **calls, "sub_agents": [agent(each) for each in sent.get(given, [])]}

        in_stage = _by(sent.get(None, []), "stage_id")
        listed = [
            {**each, "id": each["stage_id"], "executions": [agent(one) for one in in_stage.get(each["stage_id"], [])]}
            for each in stages
        ]
        return Bodies(
            {**detail, "id": session_id, "stages": listed},
            _unscored({"stages": listed, "session_interactions": llm.get(None, [])}),
            [*said, *called],
            self._bodies("timeline", session_id),
        )

    def _bodies(self, query: str, session_id: str, table: str = "") -> list[Body]:
        rows = self.rows(_QUERIES[query].format(table), {"session_id": session_id})
        found = (mapping(decoded(row["body"])) for row in rows)
        return [{**body, "id": body["interaction_id"]} if "interaction_id" in body else body for body in found]


def _by(bodies: list[Body], name: str) -> dict[Any, list[Body]]:
    sorted_: dict[Any, list[Body]] = {}
    for body in bodies:
        sorted_.setdefault(body.get(name), []).append(body)
    return sorted_


def _with_conversation(call: Body, messages: list[Body]) -> Body:
    """Add to a call the messages that it sent and its answer, as TARSy rebuilds them: a range that ends at the last."""
    request, last = mapping(call.get("llm_request")), call.get("last_message_id")
    end = next((each["sequence_number"] for each in messages if last and each.get("message_id") == last), None)
    if end is None:
        return {**call, "conversation": objects(request.get("conversation"))}
    count = request.get("messages_count")
    first = end - count if isinstance(count, int) and count > 0 else 0
    return {**call, "conversation": [each for each in messages if first <= each["sequence_number"] <= end]}
