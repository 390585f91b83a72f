"""The Chromium that tests look at pages with."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright

BROWSERS = ("chromium-headless-shell", "chromium")  # the first has no windows to draw, which spares time
PATIENCE = 600_000  # milliseconds, for busy machines; what is there is seen at once
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """Returns where the browser is: what EVALAKE_CHROMIUM names, or one of Debian's."""
    named = os.environ.get("EVALAKE_CHROMIUM")
    return next(filter(None, map(shutil.which, [named] if named else BROWSERS)), None)


@contextmanager
def launched() -> Iterator[Browser]:
    """Yields a running browser, which is closed at the end."""
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=OPTIONS)
        yield running
        running.close()
