/** Addresses of runs and items, on the pages and of the API. */

import {pathOf} from "/js/addresses.js";
import {queryText} from "/js/api.js";
import {h} from "/js/dom.js";
import {name} from "/js/format.js";

/** What the address may say of which items are wanted: as the API takes it. */
export const FILTERS = ["model", "judge", "prompt_type", "verdict", "correct", "error", "flag", "category", "label", "dataset", "q", "differ", "filter", "like", "sort", "of", "order"];

/** What the address may say of how the list looks; the API is not asked with it, but for `beside`. */
export const LOOKS = ["across", "beside", "hide", "dense"];

/** The filters of an address, or its `names`: names to texts, or to lists where a name is repeated. */
export function wantedOf(query, names = FILTERS) {
  return Object.fromEntries(names.map((name) => [name, query.getAll(name).filter(Boolean)])
    .filter(([, values]) => values.length).map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
}

export function runPath(runId) {
  return pathOf("run", runId);
}

export function itemsPath(runId, wanted = {}) {
  return pathOf("items", runId) + queryText(wanted);
}

export function itemPath(runId, itemId, wanted = {}) {
  return pathOf("item", runId, itemId) + queryText(wanted);
}

/** The place on an item's page where an answer is told. */
export function placeOf({model, prompt_type: prompt, replicate}) {
  return [model, prompt, String(replicate)];
}

export function comparePath(run, a, b) {
  return pathOf("compare") + queryText({run, a, b});
}

export function explorePath(run) {
  return pathOf("metrics") + queryText({run});
}

/** The tags of a run, each a link to the runs that have it. */
export function tagLinks(tags) {
  return tags.flatMap((tag, i) => [i > 0 && ", ", h("a", {href: pathOf("runs") + queryText({tag})}, name(tag))]);
}
