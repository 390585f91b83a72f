"""The page in a real browser: at any width no drawing leaves its column, and no label is cut or covered."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page

from evalake.reports.page import pictures, write_page
from evalake.reports.report import Report
from evalake.sdk.figures import AgreementMatrix, Bars, ByJudge, HeatMap, Quantity, Reliability, Unit
from tests.servers.chromium import PATIENCE, launched
from tests.unit.reports.samples import ACCEPTANCE, DETECTION, FIGURES, guard_metrics, metric, report

pytestmark = pytest.mark.e2e

WIDTHS = (390, 800, 1200, 1600)
LONG = [f"together_ai/meta-llama/Meta-Llama-3.{k}-405B-Instruct-Turbo" for k in range(12)]
HOSTILE = [
    "<script>alert(1)</script>",
    "x" * 300,
    "\u202e\u0646\u0645\u0648\u0630\u062c",
    "Wide Model " * 9,
    "\U0001f600" * 40,
]
CATEGORIES = [f"a category with a long name, the {k}th" for k in range(30)]
JUDGES = ("vendor/judge-of-contracts-large", "vendor/judge-of-contracts-small")
MORE = (
    HeatMap("Detection by many categories", DETECTION, "category"),
    Bars("Parts of a whole", (DETECTION, ACCEPTANCE, Quantity("none", "never measured")), stacked=True),
    Reliability("Reliability", Quantity("accuracy", "accuracy"), Quantity("confidence", "stated confidence"), "bin"),
    AgreementMatrix("Agreement", Quantity("kappa", "kappa", Unit.SCORE), "pair"),
    ByJudge("By judge", DETECTION),
)

OUTSIDE = """() => {
  const at = (e) => e.getBoundingClientRect();
  const outside = (e, box) => at(e).width > 0 && (at(e).left < at(box).left - 1 || at(e).right > at(box).right + 1 ||
    at(e).top < at(box).top - 1 || at(e).bottom > at(box).bottom + 1);
  const all = (css, within = document) => [...within.querySelectorAll(css)].filter((e) => e.checkVisibility());
  const texts = all(".plot").flatMap((plot) => all("svg text", plot).filter((e) => outside(e, plot)));
  const wide = [...all("section.figure").flatMap((column) => all(".plot, .plot svg, .panels, ul.key, .scroll", column)
    .filter((e) => outside(e, column))),
    ...all(".plot, .panels, ul.key").filter((e) => e.scrollWidth > e.clientWidth + 1)];
  const tables = all("table").filter((e) => !e.closest(".scroll"));
  const page = document.documentElement.scrollWidth - innerWidth;
  return [...texts.map((e) => `cut: ${e.textContent}`), ...wide.map((e) => `wide: ${e.getAttribute("class")}`),
    ...tables.map((e) => `table: ${e.caption.textContent}`), ...(page > 0 ? [`page: ${page}`] : [])];
}"""
COVERED = """() => [...document.querySelectorAll(".plot")].filter((e) => e.checkVisibility()).flatMap((plot) => {
  const boxes = [...plot.querySelectorAll("svg text")].map((e) => [e.textContent, e.getBoundingClientRect()]);
  return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
    Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
    Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3).map(([b]) => `${a} and ${b}`));
})"""
UNFOLD = "for (const each of document.querySelectorAll('details.more')) each.open = true"


def by_rules(models: list[str]) -> Report:
    rows: list[dict[str, Any]] = []
    for k, model in enumerate(models):
        rates = {category: 1 - (k + i) / 50 for i, category in enumerate(CATEGORIES)}
        rows += guard_metrics(
            model, 0.95 - k / 20, 0.9 - k / 30, cost=4.0**k / 1e4, latency=3.0 * 2**k, categories=rates
        )
    return report(rows, figures=(*FIGURES, *MORE))


def by_judges() -> Report:
    rows: list[dict[str, Any]] = []
    for judge in (*JUDGES, f"panel:{'+'.join(JUDGES)}"):
        for k, model in enumerate(LONG[:5]):
            of_judge = guard_metrics(model, 0.9 - k / 10, 0.8, n=10 * k + 5)
            for i in range(10):
                part = {"slice": "bin", "slice_value": f"0.{i}"}
                of_judge += [metric(model, name, (i + 0.5) / 10, 9) | part for name in ("accuracy", "confidence")]
            of_judge.append(metric(model, "kappa", 0.3) | {"slice": "pair", "slice_value": "~".join(JUDGES)})
            rows += [row | {"judge": judge} for row in of_judge]
    return report(rows, figures=(*FIGURES, *MORE))


def unknown() -> Report:
    return report([metric("m", "score", None, 0)], figures=(*FIGURES, *MORE))


REPORTS: dict[str, Callable[[], Report]] = {
    "long": lambda: by_rules(LONG),
    "hostile": lambda: by_rules(HOSTILE),
    "one": lambda: by_rules(LONG[:1]),
    "judged": by_judges,
    "unknown": unknown,
}


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    with launched() as running:
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page without a network, which may say nothing that is wrong."""
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    opened, wrong = context.new_page(), []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text))
    yield opened
    context.close()
    assert wrong == []


@pytest.mark.parametrize("name", REPORTS)
def test_at_every_width_drawings_keep_to_their_columns_and_labels_are_whole(
    page: Page, tmp_path: Path, name: str
) -> None:
    """The page is opened once, narrow, and made wider."""
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.goto(write_page(REPORTS[name](), tmp_path / "run").as_uri())
    page.evaluate(UNFOLD)
    found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found[width] = [*page.evaluate(OUTSIDE), *page.evaluate(COVERED)]
    assert found == {width: [] for width in WIDTHS}


def test_drawings_follow_the_scheme(page: Page, tmp_path: Path) -> None:
    page.goto(write_page(by_rules(LONG), tmp_path / "run").as_uri())
    colour = 'getComputedStyle(document.querySelector(".plot text")).fill'
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert light == "rgb(28, 32, 38)"
    assert page.evaluate(colour) == "rgb(230, 233, 238)"


def test_a_drawing_is_saved_with_title_and_legend_as_where_figures_are_written(page: Page, tmp_path: Path) -> None:
    shown = by_rules(LONG)
    page.goto(write_page(shown, tmp_path / "run").as_uri())
    page.evaluate(UNFOLD)
    section = page.locator("section").filter(has=page.locator("ul.key")).first
    with page.expect_download() as saved:
        section.locator("button.save").click()
    title = saved.value.suggested_filename.removesuffix(".svg")
    (texts,), (expected,) = (
        [[text.text for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]]
        for svg in (saved.value.path().read_text(), pictures(shown)[title])
    )
    assert texts == expected
    assert {*section.locator("ul.key span").all_text_contents()} <= {*texts}
