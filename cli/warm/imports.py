"""What a warm process imports, and uses once: all that a command or a flow run would otherwise wait for."""

from importlib import import_module
from pkgutil import iter_modules

# What is imported late, and what libraries import on their first use
_MODULES = (
    "graphviz",
    "metrics.variance",
    "numpy.ma",
    "prefect.flow_engine",
    "prefect.task_engine",
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


def import_flows() -> None:
    """Import the flows, the suites and what they use; starts no thread. Prefect's settings must be as wanted before."""
    import flows

    for name in (*(f"flows.{module.name}" for module in iter_modules(flows.__path__)), *_MODULES):
        import_module(name)
    from suites.places import FOLDER

    for suite in FOLDER.glob("*/suite.py"):
        import_module(f"suites.{suite.parent.name}.suite")


def use_once() -> None:
    """Use what loads or makes something on its first use, LiteLLM above all, in ways that start no thread."""
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
