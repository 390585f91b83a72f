"""Short ways to say what the tests of the client ask, and of whom."""

from collections import Counter
from collections.abc import Sequence

from evalake.core.configuration import Configuration, Limits, ModelOptions
from evalake.models.attempts import Outcome
from evalake.models.client import Client
from evalake.models.request import Failure, Request
from tests.servers.model_server import ModelServer

PROVIDERS = ("hosted_vllm", "nebius")  # asked directly, and by LiteLLM
MODELS = ("hosted_vllm/m", "openai/m", "nebius/m")
QUICK = 0.001  # seconds of backoff


def request(text: str, model: str = "hosted_vllm/m", **parameters: object) -> Request:
    """A request with one user message."""
    return Request(model, ({"role": "user", "content": text},), parameters)


def configuration(server: ModelServer, *models: str, **limits: float) -> Configuration:
    """Models at the local server, all providers with the same limits."""
    return Configuration(
        models={model: ModelOptions(api_base=server.api_base) for model in models or MODELS},
        providers={model.partition("/")[0]: Limits.model_validate(limits) for model in MODELS},
    )


def answers(client: Client, requests: Sequence[Request]) -> dict[str, Outcome]:
    """The outcome of each request by the text of its last message, in the order in which they came."""
    outcomes: dict[str, Outcome] = {}

    async def ask(each: Request) -> None:
        outcomes[each.messages[-1]["content"]] = await client.call(each)

    client.run([ask(each) for each in requests])
    return outcomes


def answer(client: Client, asked: Request) -> Outcome:
    """The outcome of one request."""
    return answers(client, [asked])[asked.messages[-1]["content"]]


def kinds(outcomes: dict[str, Outcome]) -> Counter[str]:
    """How many calls ended in which kind of failure, or in a reply."""
    return Counter(outcome.kind if isinstance(outcome, Failure) else "reply" for outcome in outcomes.values())
