"""Workers: calls a second by two Dask workers over those by one, where the model's latency is what takes time.

Each worker may have CONCURRENCY calls on their way, so one makes at most CONCURRENCY / LATENCY_SECONDS calls a second.
The model server's clock counts, from a run's first request to its last answer: batches begin and end in between.
"""

from benchmarks import flow_run
from benchmarks.material import write_commands
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder, model_server, seconds_of_calls
from tests.e2e.clusters import Cluster
from tests.e2e.processes import PrefectStack

CALLS = 1_200
CONCURRENCY = 32
BATCH_SIZE = 32  # so that the warm-up reaches every worker
LATENCY_SECONDS = 1.0
MODEL = "hosted_vllm/guard"


def main() -> None:
    """Run with one worker, let another join, run again, and report the ratio."""
    rates = []
    with folder() as place, PrefectStack(place / "prefect") as stack, model_server(LATENCY_SECONDS) as api_base:
        dataset = write_commands(place / "commands.jsonl", CALLS)
        cluster = Cluster(stack, place)
        environment = {**stack.environment, **cluster.environment}
        for name in ("one", "two"):
            cluster.worker(name)
            ran = flow_run.run(place / name, dataset, MODEL, environment, api_base, CONCURRENCY, BATCH_SIZE)
            rates.append(CALLS / seconds_of_calls(api_base, CALLS))
            say(f"{len(rates)} workers: {rates[-1]:.1f} calls a second, {CALLS / ran.seconds:.1f} in the whole run")
    one, two = rates
    most = CONCURRENCY / LATENCY_SECONDS
    behind = f"{two:.1f} calls/s over {one:.1f}; a worker's latency and concurrency allow {most:g}"
    report([Measure("two Dask workers over one", two / one, 1.8, True, "x", behind)])


if __name__ == "__main__":
    main()
