"""Workers: calls a second by two Dask workers over those by one, where the model's latency is what takes time.

The lake is a folder, and then lies on an object store.

Each worker may have CONCURRENCY calls on their way, so one makes at most CONCURRENCY / LATENCY_SECONDS calls a second.
The model server's clock counts, from a run's first request to its last answer: batches begin and end in between.
"""

from benchmarks import flow_run
from benchmarks.material import write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder, model_server, seconds_of_calls
from tests.e2e.buckets import bucket_of
from tests.e2e.clusters import Cluster
from tests.e2e.processes import PrefectStack

CALLS = 1_200
CONCURRENCY = 32
BATCH_SIZE = 32  # so that the warm-up reaches every worker
LATENCY_SECONDS = 1.0
MODEL = "hosted_vllm/guard"


def main() -> None:
    """Run with one worker, let another join, run again, and report the ratio."""
    rates: dict[str, list[float]] = {"a folder": [], "an object store": []}
    with (
        folder() as place,
        PrefectStack(place / "prefect") as stack,
        model_server(LATENCY_SECONDS) as api_base,
        bucket_of(place) as bucket,
    ):
        dataset = write_commands(place / "commands.jsonl", CALLS)
        cluster = Cluster(stack, place)
        environment = {**stack.environment, **cluster.environment, **bucket.options}
        for workers in ("one", "two"):
            cluster.worker(workers, **bucket.options)
            for kind, known in rates.items():
                here = place / f"{workers} {kind.split()[1]}"
                lake = f"s3://lake/{workers}" if kind == "an object store" else ""
                ran = flow_run.run(here, dataset, MODEL, environment, api_base, CONCURRENCY, BATCH_SIZE, lake)
                known.append(CALLS / seconds_of_calls(api_base, CALLS))
                say(f"{workers}, {kind}: {known[-1]:.1f} calls a second, {CALLS / ran.seconds:.1f} in the whole run")
    most = CONCURRENCY / LATENCY_SECONDS
    measures = []
    for kind, (one, two) in rates.items():
        behind = f"{two:.1f} calls/s over {one:.1f}; a worker's latency and concurrency allow {most:g}"
        measures.append(Measure(f"two Dask workers over one, {kind}", two / one, 1.8, True, "x", behind))
    report(measures)


if __name__ == "__main__":
    main()
