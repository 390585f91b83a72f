"""What `--help` and the shell's completion tell of the suites, without importing any."""

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from cli.help import Command

if TYPE_CHECKING:
    from suites.places import Manifest

WIDTH = 78
INDENT = 2
CONTINUED = " \\\n"  # how a shell is told that a line goes on
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|\S)+""", re.DOTALL)


class TellsSuites(Command):
    """A command whose help ends with the suites there are, and with examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what the suites say of themselves."""
        from core.errors import EvalakeError

        try:
            for line in _lines(ctx.command_path):
                formatter.write(f"{line}\n")
        except EvalakeError as error:  # such as a wrong configuration: help is still wanted
            formatter.write(f"\nThe suites cannot be listed: {error}\n")


def complete_suite(incomplete: str) -> list[tuple[str, str]]:
    """List for the shell the suites whose names begin so, with what they ask."""
    from core.errors import EvalakeError

    try:
        return [(name, manifest.asks) for name, manifest in _manifests() if name.startswith(incomplete)]
    except EvalakeError:
        return []


def _manifests() -> "Iterator[tuple[str, Manifest]]":
    from suites.places import manifest, places

    for name, place in sorted(places().items()):
        yield name, manifest(place)


def _lines(command: str) -> Iterator[str]:
    manifests = list(_manifests())
    yield "\nSuites:"
    for name, each in manifests:
        yield from _wrapped(f"{name}: {each.asks}" if each.asks else name, INDENT)
        for what, names in (("prompt types", each.prompt_types), ("models", each.models), ("judges", each.judges)):
            if names:
                yield from _wrapped(f"{what}: {', '.join(names)}", 2 * INDENT)
    if any(each.examples for _, each in manifests):
        yield "\nExamples:"
    for name, each in manifests:
        for example in each.examples:
            yield _folded(f"{command} {name} {example}".rstrip())


def _wrapped(text: str, indent: int) -> list[str]:
    later = (indent + INDENT) * " "
    return wrap(text, WIDTH, initial_indent=indent * " ", subsequent_indent=later, break_on_hyphens=False)


def _folded(example: str) -> str:
    """Fold a long command line over several lines, between words, so that a shell still takes it as it stands."""
    first, *others = _SHELL_WORD.findall(example)
    lines = [f"{INDENT * ' '}{first}"]
    for word in others:
        if len(lines[-1]) + 1 + len(word) + len(CONTINUED) <= WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(f"{2 * INDENT * ' '}{word}")
    return CONTINUED.join(lines)
