/** The address of every page, by the page's name. The server reads them here, too: they are JSON. */

const ADDRESSES = {
  "scoring": {
    "sessions": "/",
    "session": "/sessions/{session_id:session}",
    "trends": "/trends"
  },
  "viewer": {
    "runs": "/runs",
    "run": "/runs/{run_id}",
    "items": "/runs/{run_id}/items",
    "item": "/runs/{run_id}/items/{item_id}",
    "metrics": "/metrics",
    "compare": "/compare",
    "checks": "/checks",
    "sql": "/sql"
  }
};
const ALL = {...ADDRESSES.scoring, ...ADDRESSES.viewer};

/** The path of a page, with values in the places that its address has for them. */
export function pathOf(page, ...values) {
  return ALL[page].replace(/\{[^}]+\}/g, () => encodeURIComponent(values.shift()));
}

/** The name of the page at a path, and the values in it; null where no page is. */
export function pageAt(path) {
  for (const [page, address] of Object.entries(ALL)) {
    const pattern = address.replace(/\{\w+\}/g, "([^/]+)").replace(/\{\w+:\w+\}/g, "(.+)"); // some values hold slashes
    const found = new RegExp(`^${pattern}/?$`).exec(path);
    if (found) return {page, values: found.slice(1)};
  }
  return null;
}
