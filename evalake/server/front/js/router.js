/** Which address shows which page; links inside change the page without loading it anew. */

import {addressOf, here, keepAddress} from "/js/address.js";
import {pageAt, pathOf} from "/js/addresses.js";
import {h} from "/js/dom.js";
import {heading, message, showPage} from "/js/page.js";

let pages = {};
let leave = null;
let shownPath = null;

/** Show what the address says, and follow links from then on. `all`: the pages there are, by name. */
export function start(all) {
  pages = all;
  document.querySelectorAll("a[data-page]").forEach((link) => link.setAttribute("href", pathOf(link.dataset.page)));
  document.addEventListener("click", follow);
  addEventListener("popstate", () => {
    if (!location.hash || here().pathname !== shownPath) route(true); // a link to a place on this page changes no page
  });
  route(false);
}

/** Go to an address. */
function go(address, {replace = false} = {}) {
  keepAddress(address, {replace});
  route(true);
}

function route(moveFocus) {
  leave?.abort();
  leave = new AbortController();
  const {pathname: path, search} = here();
  const samePage = path === shownPath;
  shownPath = path;
  markCurrent(path);
  const found = shownAt(path);
  if (!found) {
    showPage(heading("No such page"), message("info", null, h("p", {}, "This address shows nothing.")));
    return;
  }
  pages[found.page]({parts: found.values.map(decoded), query: new URLSearchParams(search), signal: leave.signal, go});
  if (!samePage) scrollTo(0, 0);
  if (moveFocus && !samePage) document.querySelector("h1")?.focus();
}

function shownAt(path) {
  const found = pageAt(path);
  return found && found.page in pages ? found : null;
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // not an encoding of anything: the API will say that it knows no such session
  }
}

/** Mark the page's own link: of those that begin its path, the longest. */
function markCurrent(path) {
  const links = [...document.querySelectorAll(".top nav a")];
  const isOf = (to) => (to === "/" ? path === "/" || path.startsWith(pathOf("session", "")) : path.startsWith(to));
  const ways = links.map((link) => addressOf(link.href).pathname);
  const longest = Math.max(...ways.filter(isOf).map((way) => way.length));
  links.forEach((link, i) => {
    if (isOf(ways[i]) && ways[i].length === longest) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
}

function follow(event) {
  const link = event.target.closest?.("a[href]");
  const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !isPlain || link.target || event.defaultPrevented) return;
  const to = addressOf(link.href);
  if (to === null || to.hash || !shownAt(to.pathname)) return;
  event.preventDefault();
  go(to.pathname + to.search);
}
