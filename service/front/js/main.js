/** Which address shows which page; links inside the dashboard change the page without loading it anew. */

import {onConnection} from "/js/live.js";
import {heading, message, showPage} from "/js/page.js";
import {h} from "/js/dom.js";
import {comparePage} from "/js/pages/compare.js";
import {itemPage} from "/js/pages/item.js";
import {itemsPage} from "/js/pages/items.js";
import {runPage} from "/js/pages/run.js";
import {runsPage} from "/js/pages/runs.js";
import {sessionPage} from "/js/pages/session.js";
import {sessionsPage} from "/js/pages/sessions.js";
import {trendsPage} from "/js/pages/trends.js";

const OF_SCORING = [
  [/^\/(?:sessions\/?|index\.html)?$/, sessionsPage],
  [/^\/sessions\/(.+)$/, sessionPage],
  [/^\/trends\/?$/, trendsPage],
];
const OF_VIEWER = [
  [/^\/compare\/?$/, comparePage],
  [/^\/runs\/?$/, runsPage],
  [/^\/runs\/([^/]+)\/items\/([^/]+)$/, itemPage],
  [/^\/runs\/([^/]+)\/items\/?$/, itemsPage],
  [/^\/runs\/([^/]+)$/, runPage],
];
const isOnlyViewer = document.documentElement.dataset.only === "viewer"; // `evalake view`: there are no sessions
const PAGES = isOnlyViewer ? [[/^\/$/, runsPage], ...OF_VIEWER] : [...OF_SCORING, ...OF_VIEWER];

let leave = null;
let shownPath = null;

/** Go to an address of the dashboard. */
export function go(address, {replace = false} = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  route(true);
}

function route(moveFocus) {
  leave?.abort();
  leave = new AbortController();
  const path = location.pathname;
  const samePage = path === shownPath;
  shownPath = path;
  markCurrent(path);
  for (const [pattern, page] of PAGES) {
    const found = pattern.exec(path);
    if (found) {
      page({parts: found.slice(1).map(decoded), query: new URLSearchParams(location.search), signal: leave.signal, go});
      if (!samePage) scrollTo(0, 0);
      if (moveFocus && !samePage) document.querySelector("h1")?.focus();
      return;
    }
  }
  showPage(heading("No such page"), message("info", null, h("p", {}, "This address shows nothing. ", h("a", {href: "/"}, "All sessions"))));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not an encoding of anything: the API will say that it knows no such session
  }
}

function markCurrent(path) {
  for (const link of document.querySelectorAll(".top nav a")) {
    const to = link.getAttribute("href");
    const isCurrent = to === "/" ? path === "/" || path.startsWith("/sessions") : path.startsWith(to);
    if (isCurrent) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.target || event.defaultPrevented) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || to.hash || !PAGES.some(([pattern]) => pattern.test(to.pathname))) return;
  event.preventDefault();
  go(to.pathname + to.search);
});
addEventListener("popstate", () => {
  if (!location.hash || location.pathname !== shownPath) route(true); // a link to a place on this page changes no page
});
onConnection((state) => {
  document.getElementById("connection").textContent = state;
});
route(false);
