"""Tables about programs: names are single words, wrappers say how their line is read, and kinds do not contradict."""

from suites.command_guard.baselines.shell_patterns.parse import parse
from suites.command_guard.baselines.shell_patterns.rules import programs
from suites.command_guard.baselines.shell_patterns.rules.programs import SUBCOMMAND_WRAPPERS, WRAPPERS, names

WRAPPERS_BY_NAME = [*WRAPPERS.items(), *((" ".join(phrase), each) for _, phrase, each in SUBCOMMAND_WRAPPERS)]


def test_a_set_is_written_as_one_string() -> None:
    assert names(" sh  bash\n") == {"sh", "bash"}
    assert names("a b") is names("a b")


def test_options_of_a_wrapper_are_options() -> None:
    for name, wrapper in WRAPPERS_BY_NAME:
        options = names(wrapper.values) | names(wrapper.code)
        assert {option for option in options if not option.startswith("-")} == set(), name
        assert not names(wrapper.values) & names(wrapper.code), f"a value of {name} is code or it is none"
        assert wrapper.operands >= 0


def test_who_only_looks_changes_nothing() -> None:
    changing = programs.REPLACES_CONTENT | programs.CHANGES_FILE | programs.REPLACES_LAST | programs.EDITORS
    assert programs.LOOKERS & changing == set()
    assert programs.LOOKERS & (programs.SHELLS | WRAPPERS.keys()) == set()
    assert programs.PATTERN_FIRST <= programs.TEXT_TOOLS
    assert set(programs.INTERACTIVE.values()) == {"bare", "any"}


def test_a_name_is_one_word_to_the_shell() -> None:
    grammar = {"!", "[", "[[", "time", "coproc", "for", "declare", "export", "local", "readonly", "typeset"}
    known = programs.SHELLS | programs.LOOKERS | WRAPPERS.keys() | programs.READERS
    read = {name: [each.name for each in parse(f"{name} x").commands] for name in known - grammar}
    assert {name: commands for name, commands in read.items() if commands != [name]} == {}
