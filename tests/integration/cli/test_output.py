"""How rows are printed: long tables end somewhere, and values of every kind are written for machines."""

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_a_long_table_says_how_much_is_left_out(imported: Imported) -> None:
    done = evalake_here("sql", "select * from range(10003)", folder=imported.folder)
    assert done.stdout.splitlines()[-1].strip() == "9999"
    assert "3 more rows" in done.stderr
    assert (
        evalake_here("sql", "select * from range(10003)", "--format", "csv", folder=imported.folder).stdout.count("\n")
        == 10004
    )


def test_a_table_of_long_text_is_cut_and_says_so(imported: Imported) -> None:
    done = evalake_here("sql", "select repeat('x y ', 100000) as text, i from range(50) t(i)", folder=imported.folder)
    assert len(done.stdout) < 2_000_000
    assert "(300000 more characters)" in done.stdout
    assert "48 more rows" in done.stderr


def test_values_of_every_kind_are_written_for_machines(imported: Imported) -> None:
    values = {
        "'a'::blob": ("61", '"61"'),
        "[1, 2]::int[2]": ('"[1, 2]"', "[1, 2]"),
        "['a'::blob]": ('"[""61""]"', '["61"]'),
        "{'a': [0.5::double]}": ('"{""a"": [0.5]}"', '{"a": [0.5]}'),
        "null::int[]": ("", "null"),
    }
    query = "select " + ", ".join(f"{expression} as c{n}" for n, expression in enumerate(values))
    as_csv, as_json = (
        evalake_here("sql", query, "--format", form, folder=imported.folder).stdout for form in ("csv", "json")
    )
    assert as_csv == "c0,c1,c2,c3,c4\n" + ",".join(each for each, _ in values.values()) + "\n"
    assert as_json == "[{" + ", ".join(f'"c{n}": {each}' for n, (_, each) in enumerate(values.values())) + "}]\n"
