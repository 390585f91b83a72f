"""What a warm process imports, and uses once: all that a command or a flow run would otherwise wait for."""

from importlib import import_module
from pkgutil import iter_modules

# What the first flow run of a worker waits for; the last has what writes a flow's parameters down
FIRST = ("flows.evaluate", "prefect.flow_engine", "prefect.task_engine", "fastapi.encoders")
# What is imported late, and what libraries import on their first use
_LATER = (
    "graphviz",
    "metrics.variance",
    "numpy.ma",
    "prefect.utilities.visualization",
    "pyarrow.compute",
    "reports.console",
    "reports.page",
    "scipy.special",
    "service.local.temporary",
    "tasks.runtime.server",
    "tasks.steps.report",
    "tenacity",
)


def import_first() -> None:
    """Import the flow that runs most, and Prefect's engine, with their settings as the environment has them now."""
    for name in FIRST:
        import_module(name)


def import_the_rest() -> None:
    """Import all flows and suites and, which takes longest, LiteLLM; use once what loads or makes something then.

    Nothing of it starts a thread.
    """
    import flows
    from suites.places import FOLDER

    for name in (*(f"flows.{module.name}" for module in iter_modules(flows.__path__)), *_LATER):
        import_module(name)
    for suite in FOLDER.glob("*/suite.py"):
        import_module(f"suites.{suite.parent.name}.suite")
    _use_once()


def _use_once() -> None:
    import anyio
    import plotly.graph_objects as go

    from providers.direct import warm_up
    from providers.price_estimate import input_tokens
    from providers.request import Request
    from reports.template import environment as templates

    anyio.run(anyio.sleep, 0)
    warm_up()
    input_tokens(Request("openai/gpt-4o", ({"role": "user", "content": "warm"},), {}))
    for name in templates().list_templates(["html"]):
        templates().get_template(name)
    go.Figure([go.Scatter(), go.Bar(), go.Heatmap()]).to_json()
