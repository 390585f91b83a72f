"""Memory: the most that a run's process held at 200,000 samples over 10,000, and over its imports.

`python -m benchmarks.memory 1000000` measures another number of samples, alone for half an hour. A fresh run makes a
call for each sample, and a rerun finds every reply in the ledger.
"""

import sys

from benchmarks import flow_run
from benchmarks.material import write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder, prefect_server

FEW, MANY = 10_000, 200_000
MODEL = "baseline/always-block"  # takes the path of any call but for the socket, and is fast enough for so many calls


def main(many: int = MANY) -> None:
    """Run both sizes into a lake of their own, each twice: the second time every reply is in the ledger."""
    runs: dict[str, list[flow_run.Ran]] = {"fresh run": [], "rerun": []}
    with folder() as place, prefect_server(place) as environment:
        for samples in (FEW, many):
            dataset = write_commands(place / f"commands-{samples}.jsonl", samples)
            for kind, known in runs.items():
                known.append(ran := flow_run.run(place / str(samples), dataset, MODEL, environment))
                say(f"{kind} of {samples:,}: {ran.peak_bytes / 2**20:.0f} MiB, {ran.seconds:.0f} s")
    measures = []
    for kind, (small, large) in runs.items():
        sizes = ((small, FEW), (large, many))
        peaks = [f"{ran.peak_bytes / 2**20:.0f} MiB at {samples:,}" for ran, samples in sizes]
        behind = f"{', '.join(peaks)} samples; {large.before_bytes / 2**20:.0f} MiB before"
        measures += [
            Measure(f"peak memory, {kind}", large.peak_bytes / small.peak_bytes, 1.3, False, "x", behind),
            Measure("... over imports", large.peak_bytes / large.before_bytes, 2.9, False, "x", behind),
        ]
    report(measures)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
