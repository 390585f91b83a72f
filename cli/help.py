"""How the help of commands reads: arguments by their names, bounds in words."""

import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.models import CommandFunctionType

_TYPE = re.compile(r" <[^>]*>$")
_LONGEST = 400  # characters of a command's first sentence, where commands are listed
_BOUNDS = ((re.compile(r"\bx>=([0-9]+)"), r"at least \1"), (re.compile(r"\b([0-9]+)<=x<=([0-9]+)"), r"\1 to \2"))


class Command(TyperCommand):
    """A command whose help names what a user writes."""

    def get_short_help_str(self, limit: int = _LONGEST) -> str:
        """Return the first sentence of the help, whole: lists of commands have lines enough for it."""
        return super().get_short_help_str(max(limit, _LONGEST))

    def parameters_told(self, ctx: Any) -> dict[str, list[tuple[str, str]]]:
        """List arguments, then options, each as it is written and what it means."""
        told: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                title = "Arguments" if isinstance(parameter, TyperArgument) else "Options"
                told[title].append((_TYPE.sub("", record[0]), _in_words(record[1])))
        return told

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        for title, written in self.parameters_told(ctx).items():
            if written:
                with formatter.section(title):
                    formatter.write_dl(written)


def _in_words(help_text: str) -> str:
    for bounds, words in _BOUNDS:
        help_text = bounds.sub(words, help_text)
    return help_text


class Group(TyperGroup):
    """A group of commands, listed with the whole first sentence of its help."""

    def get_short_help_str(self, limit: int = _LONGEST) -> str:
        """Return the first sentence of the help."""
        return super().get_short_help_str(max(limit, _LONGEST))


class App(typer.Typer):
    """A Typer app whose commands are `Command`s."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = Command, **settings: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        """Add a command."""
        return super().command(name, cls=cls, **settings)
