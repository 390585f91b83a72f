"""A walk of twelve daily tasks in a browser: the clicks, keys and seconds that each takes, beside other tools' viewers.

A lake is filled by commands that ask a local model server; every task begins on a page of its own, and is done when
what was looked for is seen. `python -m benchmarks.walk CHECKOUT` walks the viewer of another checkout, pictures and
all; what it cannot do says so. Pictures of the end of each task are in build/walk.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Error, Locator, Page, expect

from benchmarks.material import write_prompts
from benchmarks.measure import say
from benchmarks.peers.contenders import QUIET, Asked, promptfoo_files
from benchmarks.peers.install import NotInstalledError, inspect_folder, promptfoo_folder
from benchmarks.place import folder
from tests.e2e.processes import ROOT
from tests.servers.chromium import launched
from tests.servers.model_server import ModelServer
from tests.servers.ports import free_port

PATIENCE = 8_000  # milliseconds after which a task cannot be done
MODELS = ("hosted_vllm/careful", "hosted_vllm/quick")
SAMPLES = 40
PICTURES = Path("build") / "walk"
TASKS = (
    "find the incomplete runs",
    "runs above a value, best first",
    "who is best, and is it significant",
    "a model's wrong answers",
    "filter by an expression",
    "read a wrong answer beside its truth",
    "the next two wrong answers, by keyboard",
    "download what is filtered as CSV",
    "copy a call, and ask it again",
    "words in which two models differ",
    "a gate's decisions over time",
    "label a result",
)


class Hand:
    """The hand of a reader, which counts what it does. A text that is typed or pasted counts as one key."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.keys = page, 0, 0
        self.afterwards: list[Callable[[], None]] = []  # trials of what was found, which are not timed

    def click(self, place: Locator) -> None:
        """Click."""
        place.click()
        self.clicks += 1

    def choose(self, name: str, value: str) -> None:
        """Choose in a menu: one click opens it, another chooses."""
        self.page.get_by_label(name, exact=True).select_option(value)
        self.clicks += 2

    def press(self, key: str) -> None:
        """Press a key."""
        self.page.keyboard.press(key)
        self.keys += 1

    def fill(self, name: str, text: str) -> None:
        """Type a text into a field, and confirm it."""
        field = self.page.get_by_label(name, exact=True)
        field.fill(text)
        field.press("Enter")
        self.keys += 2


@dataclass(frozen=True)
class Walk:
    """A viewer, and by the task's name: the path it begins at, and what the hand does."""

    name: str
    address: str
    tasks: Mapping[str, tuple[str, Callable[[Hand], None]]]


def main(checkout: Path = ROOT) -> None:
    """Fill a lake, walk its viewer and those of the peers, and print the table of what each task took."""
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    expect.set_options(timeout=PATIENCE)
    with folder() as place, ModelServer() as server, launched() as browser:
        server.rule(reply=json.dumps({"action": "BLOCK", "reason": "reads hashes", "confidence": 0.9}))
        server.rule(contains="ls -la", model="careful", reply=json.dumps({"action": "ALLOW", "reason": "lists"}))
        server.rule(contains="0000002", reply=json.dumps({"action": "ALLOW", "reason": "only reads"}))
        server.rule(contains="0000006", model="quick", reply=json.dumps({"action": "ALLOW", "reason": "only reads"}))
        server.rule(contains="# 000001", model="silent", faults=({"kind": "bad_request", "times": 0},))
        tables = []
        with _evalake(checkout, place, server) as ours:
            tables.append(_walked(browser, ours))
        for peer in (_inspect, _promptfoo) if checkout == ROOT else ():
            try:
                with peer(place, server) as theirs:
                    tables.append(_walked(browser, theirs))
            except NotInstalledError as error:
                say(str(error))
    _print(tables)


def _walked(browser: Browser, walk: Walk) -> tuple[str, dict[str, str]]:
    """Do every task of a viewer; returns what each took, in words."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(walk.address, wait_until="networkidle")
    took, root = {}, walk.address.split("/#")[0].rstrip("/")
    for number, name in enumerate(TASKS, 1):
        if name not in walk.tasks:
            continue
        path, act = walk.tasks[name]
        page.goto(root + path, wait_until="networkidle")
        hand, started = Hand(page), time.perf_counter()
        try:
            act(hand)
            seconds = time.perf_counter() - started
            for trial in hand.afterwards:
                trial()
            took[name] = f"{hand.clicks} + {hand.keys}, {seconds:.1f} s"
        except (Error, AssertionError) as error:
            took[name] = "no"
            say(f"{walk.name}: {name}: {str(error).splitlines()[0]}")
        page.screenshot(path=PICTURES / f"{walk.name.split()[0]}-{number:02}.png")
    context.close()
    return walk.name, took


def _print(tables: list[tuple[str, dict[str, str]]]) -> None:
    print("| task (clicks + keys, time) |" + "".join(f" {name} |" for name, _ in tables))
    print("|---|" + "---|" * len(tables))
    for name in TASKS:
        print(f"| {name} |" + "".join(f" {took.get(name, '–')} |" for _, took in tables))


@contextmanager
def _evalake(checkout: Path, place: Path, server: ModelServer) -> Iterator[Walk]:
    """Fill a lake and serve its viewer; yields the walk."""
    models = (
        f'[models."hosted_vllm/{name}"]\napi_base = "{server.api_base}"\n' for name in ("careful", "quick", "silent")
    )
    (place / "settings.toml").write_text("".join(models))
    write_samples(place / "commands.jsonl")
    words, own = [sys.executable, "-m", "evalake.cli"], {"PYTHONPATH": str(checkout), "HOME": str(place)}
    own |= {"PREFECT_HOME": str(place / "prefect"), "PREFECT_API_URL": "", "HOSTED_VLLM_API_KEY": "none"}
    environment = {**os.environ, **own}

    def command(*asked: str) -> str:
        done = subprocess.run([*words, *asked], cwd=place, env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1, 3):
            raise RuntimeError(f"evalake {' '.join(asked)}: {done.stderr}")
        return done.stdout

    common = ("--dataset", "commands.jsonl", "--config", "settings.toml", "--lake", "lake")
    command("run", "command_guard", "--models", ",".join(MODELS), *common)
    command("run", "command_guard", "--models", "hosted_vllm/silent", *common)
    both, silent = sorted(json.loads(command("runs", "--lake", "lake", "--json")), key=lambda run: -len(run["models"]))
    run = both["run_id"]
    for least in ("0.5", "0.9"):
        command("gate", f"{run}:{MODELS[0]}", "--rule", f"balanced_accuracy >= {least}", "--lake", "lake")
    view = ("view", "--config", "settings.toml", "--lake", "lake", "--port", "0")
    writes = ("--write",) if "--write" in command("view", "--help") else ()
    with _served([*words, *view, *writes], place, environment) as address:
        yield Walk("evalake", address, _our_tasks(run, str(silent["run_id"]), server))


@contextmanager
def _served(words: list[str], place: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run a server until the block ends; yields the address that it prints."""
    process = subprocess.Popen(
        words, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        for line in process.stdout or ():
            if found := re.search(r"http://[\w.]+:\d+[^ ]*", line):
                yield found[0]
                return
        raise RuntimeError(f"{' '.join(words)} ended")
    finally:
        process.terminate()
        process.wait()


def write_samples(file: Path) -> None:
    """Write commands, every other one malicious."""
    samples = [
        {
            "sample_id": f"s{number}",
            "command": f"{'ls -la /home/me' if number % 2 else 'cat /etc/shadow'} # {number:07d}",
            "label": "harmless" if number % 2 else "malicious",
            "category": None if number % 2 else "file-read",
        }
        for number in range(SAMPLES)
    ]
    file.write_text("\n".join(map(json.dumps, samples)))


def _our_tasks(run: str, silent: str, server: ModelServer) -> dict[str, tuple[str, Callable[[Hand], None]]]:
    def incomplete(hand: Hand) -> None:
        hand.choose("State", "incomplete")
        expect(hand.page.locator("section.runs tbody tr")).to_have_count(1)
        expect(hand.page.locator("section.runs tbody")).to_contain_text(silent)

    def above(hand: Hand) -> None:
        hand.fill("Filter", "value > 0.6")
        hand.click(hand.page.get_by_role("button", name="Headline"))
        expect(hand.page.locator("section.runs tbody tr")).to_have_count(1)

    def best(hand: Hand) -> None:
        hand.click(hand.page.get_by_role("link", name=run))
        expect(hand.page.get_by_role("heading", name="Headline")).to_be_visible()

    def wrong(hand: Hand) -> None:
        hand.click(hand.page.get_by_role("link", name=MODELS[1], exact=True).first)
        expect(hand.page.locator("tbody .verdict.wrong").first).to_be_visible()

    def expression(hand: Hand) -> None:
        hand.press("f")
        hand.fill("Filter", 'verdict = "ALLOW" and label = "malicious"')
        expect(hand.page.locator("tbody a.id")).to_have_count(2)

    def read(hand: Hand) -> None:
        hand.click(hand.page.locator("tbody a.id").first)
        expect(hand.page.get_by_role("heading", name="Ground truth")).to_be_visible()

    def following(hand: Hand) -> None:
        read(hand)
        hand.clicks = 0
        for _ in range(2):
            before = hand.page.get_by_role("heading", level=1).text_content()
            hand.press("j")
            expect(hand.page.get_by_role("heading", level=1)).not_to_have_text(str(before))

    def download(hand: Hand) -> None:
        with hand.page.expect_download() as file:
            hand.click(hand.page.get_by_role("button", name="Download CSV"))
        assert len(file.value.path().read_text().splitlines()) > 1

    def again(hand: Hand) -> None:
        read(hand)
        hand.click(hand.page.locator("summary", has_text="Raw request").first)
        for name in ("curl", "Python"):
            hand.click(hand.page.get_by_role("button", name=f"Copy {name}").first)
            expect(hand.page.get_by_role("button", name="Copied")).to_have_count(1 if name == "curl" else 2)
            copied = str(hand.page.evaluate("navigator.clipboard.readText()"))
            hand.afterwards.append(partial(_ask_again, copied, name, server))

    def differ(hand: Hand) -> None:
        hand.click(hand.page.get_by_role("link", name="Compare models"))
        expect(hand.page.get_by_role("heading", name="Difference, A − B")).to_be_visible()
        hand.click(hand.page.get_by_role("button", name="Compare", exact=True).first)
        expect(hand.page.locator(".sides").first).to_be_visible()

    def gate(hand: Hand) -> None:
        hand.click(hand.page.get_by_role("link", name="Gates"))
        expect(hand.page.get_by_role("heading", name="balanced_accuracy >= 0.5")).to_be_visible()

    def label(hand: Hand) -> None:
        hand.fill("Your name, kept with each label", "anna")
        expect(hand.page.locator("form fieldset").first).to_be_visible()
        hand.press("1")
        hand.press("Enter")
        expect(hand.page.locator("main")).to_contain_text(re.compile("1 of|1 label"))

    shown = f"/runs/{run}/items?model={MODELS[1]}&correct=false"
    starts = ["/runs", "/runs", "/runs", f"/runs/{run}", f"/runs/{run}/items", shown, shown, shown, shown]
    starts += [f"/runs/{run}", "/runs", f"/runs/{run}/grade"]
    acts = (incomplete, above, best, wrong, expression, read, following, download, again, differ, gate, label)
    return dict(zip(TASKS, zip(starts, acts, strict=True), strict=True))


def _ask_again(text: str, name: str, server: ModelServer) -> None:
    """Execute what was copied, as a reader pastes it; the server must have been asked once more."""
    before = len(server.seen)
    words = ["bash", "-c", text] if name == "curl" else [sys.executable, "-c", text]
    environment = {**os.environ, "HOSTED_VLLM_API_KEY": "none"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert len(server.seen) == before + 1, done.stderr
    assert "ALLOW" in done.stdout or "BLOCK" in done.stdout, done.stdout


# Peers: what their viewers can do of it


@contextmanager
def _inspect(place: Path, server: ModelServer) -> Iterator[Walk]:
    """Log two models in Inspect, and serve its viewer."""
    program = str(inspect_folder() / "bin" / "inspect")
    shutil.copy(Path(__file__).with_name("peers") / "inspect_task.py", place / "task.py")
    prompts = write_prompts(place / "prompts.jsonl", place / "commands.jsonl", MODELS[0])
    own = {**os.environ, "HOME": str(place), "BENCH_BASE_URL": server.api_base, "BENCH_API_KEY": "none"}
    models = ",".join(f"openai-api/bench/{name.split('/')[1]}" for name in MODELS)
    words = [program, "eval", "task.py", "--model", models, "--display", "none", "-T", f"file={prompts}"]
    subprocess.run(words, cwd=place, env=own, check=True, capture_output=True)
    with _served([program, "view", "--port", str(free_port())], place, own) as address:
        yield Walk("Inspect", address, _inspect_tasks(address))


def _inspect_tasks(address: str) -> dict[str, tuple[str, Callable[[Hand], None]]]:
    def opened(hand: Hand) -> None:
        hand.page.goto(address)
        hand.page.get_by_text("quick").first.click()
        expect(hand.page.locator(".cm-content")).to_be_visible()

    def filtered(hand: Hand, text: str) -> None:
        hand.click(hand.page.locator(".cm-content"))
        hand.page.keyboard.type(text)
        hand.keys += 1
        expect(hand.page.get_by_text("/ 40 Samples")).to_be_visible()

    def above(hand: Hand) -> None:
        for _ in range(2):
            hand.click(hand.page.get_by_text("Score", exact=True))
        expect(hand.page.locator("[role=row]").nth(1)).to_contain_text("quick")

    def wrong(hand: Hand) -> None:
        hand.click(hand.page.get_by_text("quick").first)
        filtered(hand, 'includes == "I"')

    def expression(hand: Hand) -> None:
        opened(hand)
        filtered(hand, 'includes == "I" and input_contains("shadow")')

    def read(hand: Hand) -> None:
        opened(hand)
        hand.click(hand.page.locator("[role=row]").nth(1))
        expect(hand.page.get_by_text("Target", exact=False).first).to_be_visible()

    def following(hand: Hand) -> None:
        read(hand)
        hand.clicks = 0
        for number in (2, 3):
            hand.press("ArrowRight")
            expect(hand.page.get_by_text(f"Sample {number} ").first).to_be_visible()

    acts = {1: above, 3: wrong, 4: expression, 5: read, 6: following}
    return {TASKS[number]: ("/", act) for number, act in acts.items()}


def _promptfoo_tasks() -> dict[str, tuple[str, Callable[[Hand], None]]]:
    def wrong(hand: Hand) -> None:
        hand.click(hand.page.get_by_text("Failures", exact=True))
        expect(hand.page.get_by_text("FAIL", exact=True).first).to_be_visible()

    def read(hand: Hand) -> None:
        hand.page.get_by_text("Failures", exact=True).click()
        hand.click(hand.page.locator("td .action").last)
        expect(hand.page.get_by_role("dialog")).to_be_visible()

    def download(hand: Hand) -> None:
        hand.click(hand.page.get_by_role("button", name="Eval actions"))
        hand.click(hand.page.get_by_text("Download", exact=True))
        with hand.page.expect_download():
            hand.click(hand.page.get_by_text("CSV", exact=False).first)

    def differ(hand: Hand) -> None:
        hand.click(hand.page.get_by_text("Different", exact=True))
        expect(hand.page.locator("td .action").first).to_be_visible()

    acts = {3: wrong, 5: read, 7: download, 9: differ}
    acts[11] = lambda hand: hand.click(hand.page.locator("td .action").nth(1))
    return {TASKS[number]: ("/eval", act) for number, act in acts.items()}


@contextmanager
def _promptfoo(place: Path, server: ModelServer) -> Iterator[Walk]:
    """Evaluate two models in promptfoo, and serve its viewer."""
    modules = promptfoo_folder() / "node_modules"
    program = [str(next(modules.glob("node-linux-*/bin/node"))), str(modules / "promptfoo/dist/src/entrypoint.js")]
    asked = Asked(place / "commands.jsonl", place / "prompts.jsonl", server.api_base)
    prompt, settings = promptfoo_files(asked)
    provider = settings["providers"][0]
    settings["providers"] = [{**provider, "id": f"openai:chat:{name.split('/')[1]}"} for name in MODELS]
    (place / "prompt.json").write_text(json.dumps(prompt))
    (place / "settings.json").write_text(json.dumps(settings))
    own = {**os.environ, **QUIET, "HOME": str(place), "PROMPTFOO_CONFIG_DIR": str(place / "state")}
    words = [*program, "eval", "--config", "settings.json", "--no-table", "--no-progress-bar", "--no-share"]
    subprocess.run(words, cwd=place, env=own, capture_output=True)
    with _served([*program, "view", "--port", str(free_port()), "--no"], place, own) as address:
        yield Walk("promptfoo", address, _promptfoo_tasks())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
