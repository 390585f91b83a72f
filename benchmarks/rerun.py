"""Rerun: samples a second of a run whose every reply is in the ledger, from the flow's body to its snapshot."""

from benchmarks import flow_run
from benchmarks.material import remember, requests, write_commands
from benchmarks.measure import Measure, report
from benchmarks.place import folder, prefect_server
from storage.lake import Lake

SAMPLES = 50_000
MODEL = "baseline/always-block"  # reachable without a server; it is never asked


def main() -> None:
    """Remember every reply, run, and report."""
    with folder() as place, prefect_server(place) as environment:
        dataset = write_commands(place / "commands.jsonl", SAMPLES)
        remember(Lake(str(place / "lake")), requests(dataset, MODEL))
        ran = flow_run.run(place, dataset, MODEL, environment)
    behind = f"{SAMPLES:,} samples in {ran.seconds:.2f} s"
    report([Measure("rerun from the ledger", SAMPLES / ran.seconds, 10_000, True, "samples/s", behind)])


if __name__ == "__main__":
    main()
