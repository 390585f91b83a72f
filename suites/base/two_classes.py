"""Labels of two classes as tables have them: which value is which class, understood before anything is asked.

Values that name a class are read without regard to case. `1`, `yes` and `true` say nothing by themselves: only a
column whose name says what is true gives them a meaning, or a mapping. A value that cannot be understood is refused.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.errors import SourceError

_TRUE, _FALSE = frozenset({"1", "true", "yes", "y", "t"}), frozenset({"0", "false", "no", "n", "f"})
_WORDS_OF_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DENIALS = frozenset({"no", "not", "non", "un"})
_MOST_SHOWN = 6


@dataclass(frozen=True)
class Understood:
    """What each value of a label column means, and that in a sentence where it is not plain."""

    classes: Mapping[str, str]
    words: str | None


@dataclass(frozen=True)
class TwoClasses:
    """The two classes of a label field.

    Attributes:
        field: The field's name.
        positive, negative: The classes, as samples have them.
        words: Other values that name a class.
        truths: Words in a column's name by which a true value is the class.
    """

    field: str
    positive: str
    negative: str
    words: Mapping[str, str]
    truths: Mapping[str, str]

    def understand(
        self, where: str, column: str, values: Iterable[str], meanings: Mapping[str, str | None] | None
    ) -> Understood:
        """Find out what the values of a label column mean.

        Args:
            where: The file, for errors.
            column: The column's name.
            values: The value of each row, as text.
            meanings: The class of values by the user's mapping; `*` is any other; None without a mapping.

        Raises:
            SourceError: A value names no class, or the mapping fits no row.
        """
        counts = Counter(values)
        given = {_plain(text): self._class(where, meaning) for text, meaning in (meanings or {}).items()}
        found = ", ".join(f"{value!r} ({count})" for value, count in counts.most_common(_MOST_SHOWN))
        named = given.keys() - {"*"}
        if named and counts and not any(_plain(value) in named for value in counts) and "*" not in given:
            raise SourceError(f"{where}: the mapping of {self.field!r} fits no row; the column {column!r} has {found}")
        by_name = self._by_name(column)
        classes: dict[str, str] = {}
        for value in counts:
            plain = _plain(value)
            read = given.get(plain) or given.get("*") or self._named(plain) or by_name.get(plain)
            if read is None:
                raise SourceError(
                    f"{where}: the column {column!r} has values that are neither {self.positive} nor {self.negative}: "
                    f"{found}. Say what they mean, as in "
                    f"?{self.field}={column}&{self.field}.{self.positive}=1&{self.field}.{self.negative}=0"
                )
            classes[value] = read
        of_itself = self._by_name(self.field) if column == self.field else {}
        is_plain = all(read in (value, of_itself.get(_plain(value))) for value, read in classes.items())
        said = ", ".join(f"{value!r} is {classes[value]} ({count})" for value, count in counts.most_common(_MOST_SHOWN))
        return Understood(classes, None if is_plain else f"{self.field} from the column {column!r}: {said}")

    def _named(self, plain: str) -> str | None:
        return {self.positive: self.positive, self.negative: self.negative, **self.words}.get(plain)

    def _class(self, where: str, meaning: str | None) -> str:
        plain = _plain(meaning or "")
        named = self._named(plain) or self._by_name(self.field).get(plain)
        if named is None:
            raise SourceError(
                f"{where}: the mapping gives {self.field} the value {plain!r}; it is {self.positive} or {self.negative}"
            )
        return named

    def _by_name(self, column: str) -> Mapping[str, str]:
        """Look up what true and false mean by a column's name; nothing where the name does not say it."""
        said = {word.lower() for word in _WORDS_OF_NAME.findall(column)}
        classes = {self.truths[word] for word in said & self.truths.keys()}
        if len(classes) != 1 or said & _DENIALS:
            return {}
        (when_true,) = classes
        when_false = self.negative if when_true == self.positive else self.positive
        return {**dict.fromkeys(_TRUE, when_true), **dict.fromkeys(_FALSE, when_false)}


def _plain(value: str) -> str:
    """Write a value for comparing: without case and space around it, whole numbers without a fraction."""
    return value.strip().casefold().removesuffix(".0")
