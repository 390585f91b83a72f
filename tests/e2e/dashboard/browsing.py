"""A page that is looked at, with all that it asked for and said on the side."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, expect

MOST_TABS = 80

AXE = Axe()  # knows WCAG and what is good practice
# What is in order is not listed. Style sheets are not fetched once more, which the pages' own policy forbids.
VIOLATIONS_ONLY = {"resultTypes": ["violations"], "preload": False}
LAID_OUT = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
FOCUSED = "(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"


Look = tuple[int, Any]  # a width, and `light` or `dark`


class Visit:
    """One page of the browser."""

    def __init__(self, page: Page, address: str) -> None:
        self.page, self.address = page, address
        self.hosts: set[str] = set()
        self.sockets: list[str] = []
        self.wrong: list[str] = []
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        page.on("websocket", lambda socket: self.sockets.append(urlsplit(socket.url).netloc))
        page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("console", self._console)

    def go(self, path: str) -> None:
        """Load an address, and wait until it shows its data."""
        self.page.goto(self.address + path)
        self.settled()

    def settled(self) -> None:
        """Wait until nothing is loading."""
        self.page.wait_for_load_state("networkidle")
        expect(self.page.locator("h1")).to_have_count(1)

    def row(self, session_id: str) -> Locator:
        """A session's row in the list."""
        return self.page.locator("tbody tr", has=self.page.get_by_role("link", name=session_id, exact=True))

    def badge(self, session_id: str) -> str:
        """What a session's badge shows in the list."""
        return str(self.row(session_id).locator(".badge").evaluate("e => e.firstChild.data"))

    def expect_ids(self, *session_ids: str) -> None:
        """Wait until the list shows just these sessions, in this order."""
        expect(self.page.locator("tbody a.id")).to_have_text(list(session_ids))

    def ids(self) -> list[str]:
        """The sessions that the list shows, in order."""
        return self.page.locator("tbody a.id").all_text_contents()

    def tab_to(self, name: str) -> None:
        """Press Tab until the focus is on something of that name."""
        for _ in range(MOST_TABS):
            self.page.keyboard.press("Tab")
            if name == self.page.evaluate(FOCUSED):
                return
        raise AssertionError(f"{MOST_TABS} times Tab did not lead to {name!r}")

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def look(self, width: int, scheme: Any) -> None:
        """Change the window's width, and light for dark or dark for light."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)
        self.page.evaluate(LAID_OUT)

    def obstacles_of(self, looks: Sequence[Look], turn: int | None = None) -> list[str]:
        """List the faults of the page, by width and scheme.

        Args:
            looks: The widths and schemes.
            turn: In a walk over many pages, the number of this one: the audit, which takes a second, is done in one of
                the looks, by turns. None has it done in each.
        """
        obstacles = []
        for number, (width, scheme) in enumerate(looks):
            self.look(width, scheme)
            is_audited = turn is None or number == turn % len(looks)
            found = self.obstacles() if is_audited else self._too_wide()
            obstacles += [f"{width} {scheme}: {each}" for each in found]
        return obstacles

    def obstacles(self) -> list[str]:
        """What is wrong with the page for who sees little, hears it or uses the keyboard, and for its width."""
        if not self.page.evaluate("'axe' in window"):  # brought in once, which takes long
            self.page.evaluate(AXE.axe_script)
        violations = [
            f"{violation['id']}: {node['html']} {node['failureSummary']}"
            for violation in self.page.evaluate("rules => axe.run(rules)", VIOLATIONS_ONLY)["violations"]
            for node in violation["nodes"]
        ]
        tables = self.page.locator("table:not(:has(caption))").count()
        return [*violations, *self._too_wide(), *["a table without a caption"] * tables]

    def _too_wide(self) -> list[str]:
        return [f"too wide by {self.overflow()} pixels"] if self.overflow() > 0 else []

    def harm(self) -> list[str]:
        """Other hosts that were asked, what popped up, policies that were broken, scripts that failed."""
        others = {*self.hosts, *self.sockets} - {urlsplit(self.address).netloc}
        return [*sorted(others), *self.wrong]

    def _dialog(self, dialog: Dialog) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        is_refusal = "Failed to load resource" in message.text  # an answer of the API that the page shows as a message
        if message.type == "error" and not is_refusal:
            self.wrong.append(f"console: {message.text}")


def session_path(session_id: str, query: str = "") -> str:
    """The address of a session's page."""
    return f"/sessions/{quote(session_id, safe='')}{query}"
