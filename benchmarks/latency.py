"""Latency: calls a second where each takes a second and five hundred may be on their way at once.

The model server's clock counts, from a run's first request to its last answer: batches begin and end in between.
"""

from benchmarks import flow_run
from benchmarks.material import write_commands
from benchmarks.measure import Measure, report
from benchmarks.place import folder, model_server, prefect_server, seconds_of_calls

CALLS = 10_000
CONCURRENCY = 500
LATENCY_SECONDS = 1.0
MODEL = "hosted_vllm/guard"


def main() -> None:
    """Run the dataset, and report the share reached of the rate that latency and concurrency allow."""
    with folder() as place, prefect_server(place) as environment, model_server(LATENCY_SECONDS) as api_base:
        dataset = write_commands(place / "commands.jsonl", CALLS)
        ran = flow_run.run(place / "run", dataset, MODEL, environment, api_base, CONCURRENCY)
        rate = CALLS / seconds_of_calls(api_base, CALLS)
    most = CONCURRENCY / LATENCY_SECONDS
    behind = f"{rate:.0f} calls/s of {most:.0f}; {CALLS / ran.seconds:.0f} in the whole flow body"
    report([Measure(f"{CONCURRENCY} calls of {LATENCY_SECONDS:g} s at once", rate / most, 0.9, True, "x", behind)])


if __name__ == "__main__":
    main()
