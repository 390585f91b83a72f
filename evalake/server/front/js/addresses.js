/** The address of every page, by its name: NAME is shown by NAMEPage of pages/NAME.js. The server reads this JSON, too. */

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
    "grade": "/runs/{run_id}/grade",
    "metrics": "/metrics",
    "compare": "/compare",
    "explain": "/explain",
    "gates": "/gates",
    "checks": "/checks",
    "sql": "/sql"
  }
};
const ALL = {...ADDRESSES.scoring, ...ADDRESSES.viewer};

/** The names of the pages of some parts. */
export function namesOf(parts) {
  return parts.flatMap((part) => Object.keys(ADDRESSES[part]));
}

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
