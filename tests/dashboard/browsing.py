"""A page that is looked at, with all that it asked for and said on the side."""

from typing import Any
from urllib.parse import quote, urlsplit

from playwright.sync_api import ConsoleMessage, Dialog, Locator, Page, expect

MOST_TABS = 80

# Text whose colour does not stand out from what is behind it, as WCAG's level AA asks.
CONTRAST = """() => {
  const rgb = (text) => { const m = text.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const light = ([r, g, b]) => [r, g, b].map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; })
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || e.closest("option, svg, noscript, .hidden") || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(rgb(style.color)), light(behind(e))].sort((x, y) => y - x);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if ((a + .05) / (b + .05) < (isLarge ? 3 : 4.5)) found.push([walker.currentNode.data.slice(0, 40), style.color, String(behind(e))]);
  }
  return found;
}"""

STRUCTURE = """() => {
  const all = (css) => [...document.querySelectorAll(css)];
  const ids = all("[id]").map((e) => e.id);
  const levels = all("h1,h2,h3,h4,h5,h6").filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]));
  return {
    lang: document.documentElement.lang,
    h1: all("h1").length,
    landmarks: ["header", "nav", "main"].filter((tag) => all(tag).length === 0),
    duplicateIds: ids.filter((id, i) => ids.indexOf(id) !== i),
    brokenReferences: all("[aria-labelledby],[aria-describedby],[aria-controls],label[for]")
      .flatMap((e) => ["aria-labelledby", "aria-describedby", "aria-controls", "for"].flatMap((a) => (e.getAttribute(a) ?? "").split(" ").filter(Boolean)))
      .filter((id) => !document.getElementById(id)),
    tablesWithoutCaption: all("table").filter((t) => !t.caption).length,
    skippedLevels: levels.filter((level, i) => i > 0 && level > levels[i - 1] + 1).length,
  };
}"""
SOUND = {
    "lang": "en",
    "h1": 1,
    "landmarks": [],
    "duplicateIds": [],
    "brokenReferences": [],
    "tablesWithoutCaption": 0,
    "skippedLevels": 0,
}
CONTROLS = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "spinbutton",
    "checkbox",
    "tab",
    "img",
    "progressbar",
    "meter",
    "region",
}


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

    def expect_first(self, session_id: str) -> None:
        """Wait until the list begins with a session."""
        expect(self.page.locator("tbody a.id").first).to_have_text(session_id)

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
            if name == self.page.evaluate(
                "(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"
            ):
                return
        raise AssertionError(f"{MOST_TABS} times Tab did not lead to {name!r}")

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def obstacles(self) -> list[Any]:
        """What is wrong with structure, contrast, names and width, for those who see little, or hear the page."""
        structure = {key: value for key, value in self.page.evaluate(STRUCTURE).items() if value != SOUND[key]}
        width = {"too wide by pixels": self.overflow()} if self.overflow() > 0 else {}
        return [*filter(None, (structure, width)), *self.page.evaluate(CONTRAST), *self.unnamed()]

    def unnamed(self) -> list[str]:
        """The roles of controls without a name, as the browser tells screen readers."""
        session = self.page.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        told = [(_value(node, "role"), _value(node, "name")) for node in nodes if not node.get("ignored")]
        return [role for role, name in told if role in CONTROLS and not name]

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


def _value(node: dict[str, Any], key: str) -> str:
    return str(node.get(key, {}).get("value", "")).strip()
