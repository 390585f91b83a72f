"""Parsers, extractors, importers, files and the API, fuzzed with guidance by coverage: only documented errors come out.

The fuzzer, Atheris, is a tool of this campaign only, and is installed into a folder of its own.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from chaos.outcome import Outcome

NEEDED = "atheris==3.0.0"
TOOLS = Path(__file__).parents[1] / "build" / "atheris"
SLOWEST = 10  # seconds that one input may take
MEGABYTES = 3000
LONGEST = 4096  # bytes of an input
FOUND_LINES = 40
TARGETS = ("parsers", "extractors", "importers", "files", "API")


def campaign(folder: Path, seed: int, seconds: float) -> Iterator[Outcome]:
    """Fuzz each target for an equal part of the time."""
    if (missing := _install()) is not None:
        yield Outcome("fuzzing", 0, f"not done: {missing}")
        return
    for target in TARGETS:
        yield _fuzz(folder / target, target, seed, max(5, int(seconds / len(TARGETS))))


def _install() -> str | None:
    """Install the fuzzer; returns why it cannot be installed, None where it is."""
    if not (TOOLS / "atheris").is_dir():
        words = ["install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--target", str(TOOLS)]
        done = subprocess.run([sys.executable, "-m", "pip", *words, NEEDED], capture_output=True, text=True)
        if done.returncode:
            return f"{NEEDED} cannot be installed here ({done.stderr.strip().splitlines()[-1][:100]})"
    return None


def _fuzz(folder: Path, target: str, seed: int, seconds: int) -> Outcome:
    (corpus := folder / "corpus").mkdir(parents=True)
    words = [sys.executable, "-m", "chaos.fuzz", target, f"-max_total_time={seconds}", f"-seed={seed}"]
    words += [f"-timeout={SLOWEST}", f"-rss_limit_mb={MEGABYTES}", f"-max_len={LONGEST}", f"-artifact_prefix={folder}/"]
    path = os.pathsep.join([str(TOOLS), str(Path(__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [*words, "-print_final_stats=1", str(corpus)], env=environment, capture_output=True, text=True, errors="replace"
    )
    inputs = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    broken = ""
    if done.returncode:
        said = (done.stdout + done.stderr).splitlines()
        found = [line for line in said if re.match(r"\s*(\w+\.)*\w*(Error|Exception)\b|==\d+== ?ERROR", line)]
        broken = f"{' '.join(found)[:300] or ' '.join(said[-FOUND_LINES:])[-600:]}: {_input(folder)}"
    held = f"{seconds} s, {covered[-1] if covered else 0} branches reached: only documented errors, within {SLOWEST} s"
    return Outcome(f"fuzzed inputs: {target}", int(inputs[1]) if inputs else 0, held, broken)


def _input(folder: Path) -> str:
    """Find the input that broke the target, to make a test of."""
    return next((repr(each.read_bytes()[:400]) for each in sorted(folder.iterdir()) if each.is_file()), "no input kept")


def main(target: str, options: list[str]) -> None:
    """Fuzz one target, in this process."""
    import atheris

    with atheris.instrument_imports(include=["evalake"]):
        from chaos.fuzz_targets import SEEDS, attack
    corpus = Path(options[-1])
    for number, text in enumerate(SEEDS):
        (corpus / str(number)).write_text(text, encoding="utf-8")
    atheris.Setup([sys.argv[0], *options], lambda content: attack(target, content))
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
