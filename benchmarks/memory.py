"""Memory: the peak memory of a run's process at twenty times the samples, over that at once; asked anew, and rerun."""

from benchmarks import flow_run
from benchmarks.material import write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder, prefect_server

SAMPLES = (10_000, 200_000)
MODEL = "baseline/always-block"  # takes the path of any call but for the socket, and is fast enough for so many calls


def main() -> None:
    """Run both sizes into a lake of their own, each twice: the second time every reply is in the ledger."""
    peaks: dict[str, list[int]] = {"fresh run": [], "rerun": []}
    with folder() as place, prefect_server(place) as environment:
        for samples in SAMPLES:
            dataset = write_commands(place / f"commands-{samples}.jsonl", samples)
            for kind, known in peaks.items():
                ran = flow_run.run(place / str(samples), dataset, MODEL, environment)
                known.append(ran.peak_bytes)
                say(f"{kind} of {samples:,}: {ran.peak_bytes / 2**20:.0f} MiB, {ran.seconds:.0f} s")
    measures = []
    for kind, (small, large) in peaks.items():
        behind = f"{small / 2**20:.0f} MiB at {SAMPLES[0]:,} samples, {large / 2**20:.0f} MiB at {SAMPLES[1]:,}"
        measures.append(Measure(f"peak memory, {kind}", large / small, 1.5, False, "x", behind))
    report(measures)


if __name__ == "__main__":
    main()
