"""The sources that are followed: which were read, and what keeps the others from being read."""

import logging
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from core.errors import SourceError
from core.redaction import redact
from suites.base import Dataset
from suites.session_review.sources.read import read_dataset, watermark

logger = logging.getLogger("evalake.service")


class SourceView(BaseModel):
    """A source, and how reading it went the last time."""

    source: str
    state: Literal["read", "empty", "away", "unread"]
    detail: str | None


@dataclass
class Source:
    """One source. It is read again where it has changed since it was read."""

    name: str
    state: Literal["read", "empty", "away", "unread"] = "unread"
    detail: str | None = None
    _mark: Any = None

    def read(self) -> Dataset | None:
        """Read the dataset, which may be empty; None where it has not changed, or cannot be read: see `state`."""
        try:
            mark = watermark(self.name)
            if self.state in ("read", "empty") and mark == self._mark:
                return None
            dataset = read_dataset(self.name, may_be_empty=True)
        except SourceError as error:
            self._tell("away", redact(str(error)))
            return None
        self._mark = mark  # of before it was read: what came in the meantime is read the next time
        empty = "it holds no session that is over and can be judged"
        self._tell(*(("read", None) if dataset.samples else ("empty", empty)))
        return dataset

    @property
    def view(self) -> SourceView:
        """The source as the API tells it."""
        return SourceView(source=redact(self.name), state=self.state, detail=self.detail)

    def _tell(self, state: Literal["read", "empty", "away"], detail: str | None) -> None:
        if (state, detail) != (self.state, self.detail) and detail is not None:
            logger.warning("the source %s: %s", redact(self.name), detail)
        self.state, self.detail = state, detail
