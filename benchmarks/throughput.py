"""Throughput: calls a second of whole runs over those of a bare LiteLLM loop, against one model server.

Both make the same calls with the same concurrency, in turns, each time in a new process that has warmed up. A run
counts from its flow's body to its end, so reading, landing, audit and snapshot are in it; of the bare loop the calls
alone count.
"""

from statistics import median

from benchmarks import bare_loop, flow_run
from benchmarks.material import write_commands, write_prompts
from benchmarks.measure import Measure, report, say
from benchmarks.place import folder, model_server, prefect_server

CALLS = 5_000  # what a run does once, such as its snapshot, is a tenth of the time of 2,000
ROUNDS = 3
MODELS = {"openai/guard": 5.0, "hosted_vllm/guard": 4.0}  # how many times as many calls as the bare loop makes


def main() -> None:
    """Time bare loops and runs in turns, and report the median of the rounds' ratios."""
    with folder() as place, prefect_server(place) as environment, model_server() as api_base:
        dataset = write_commands(place / "commands.jsonl", CALLS)
        measures = []
        for model in MODELS:
            prompts = write_prompts(place / "prompts.jsonl", dataset, model)
            rates = []
            for number in range(ROUNDS):
                bare = CALLS / bare_loop.run(prompts, model, api_base, flow_run.CONCURRENCY)
                lake = place / f"{model.replace('/', '-')}-{number}"
                ours = CALLS / flow_run.run(lake, dataset, model, environment, api_base).seconds
                say(f"{model}: {ours:.0f} calls a second in a run, {bare:.0f} in a bare loop")
                rates.append((ours / bare, ours, bare))
            ratio, ours, bare = (median(column) for column in zip(*rates, strict=True))
            behind = f"{ours:.0f} calls/s in a run, {bare:.0f} in a bare loop; medians of {ROUNDS} rounds"
            measures.append(Measure(f"throughput over a bare loop, {model}", ratio, MODELS[model], True, "x", behind))
    report(measures)


if __name__ == "__main__":
    main()
