/** Items whose labels may be wrong: those that discriminate the wrong way, and those that people dispute. */

import {get} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, counted, interval, name, number} from "/js/format.js";
import {problem} from "/js/page.js";
import {itemPath, runPath} from "/js/runs_address.js";
import {table} from "/js/table.js";

/** The items, read once they are opened. */
export function suspiciousItems(runId, signal) {
  const place = h("div");
  const details = h("details", {class: "panel", ontoggle: async () => {
    if (!details.open || place.childElementCount) return;
    try {
      const found = await get(`${runPath(runId)}/opposed`, {}, signal);
      show(place, disputed(runId, found), opposed(runId, found));
    } catch (error) {
      if (error.name !== "AbortError") show(place, problem(error, "The items cannot be shown", null));
    }
  }}, h("summary", {}, "Items whose labels may be wrong"), place);
  return details;
}

function disputed(runId, {disputed: rows}) {
  if (!rows.length) return h("p", {class: "note"}, "Nobody disputes a label. Item pages let people do so under evalake view --write.");
  return [h("h3", {}, "Disputed by people"), table({caption: "Items whose labels people dispute", headings: ["Item", "Label", "Why"], texts: true, kinds: [null, "line", "long"],
    rows: rows.map((each) => [h("a", {href: itemPath(runId, each.item_id)}, name(each.sample_id, 80)), each.label ? name(each.label) : "–", each.reasons.map((reason) => h("p", {}, name(reason, 500)))])})];
}

function opposed(runId, {items, fewest_models: fewest, opposed: rows}) {
  if (!items) return h("p", {class: "note"}, `Item-rest correlations need ${count(fewest)} models.`);
  const note = h("p", {class: "note"}, `Models that are right on such an item are wrong more often on the rest: its label may be wrong. Of ${counted(items, "item")} with an item-rest correlation, the intervals of about ${count(Math.round(items * 0.025))} are below 0 by chance.`);
  if (!rows.length) return [note, h("p", {class: "empty"}, "None.")];
  return [note, table({caption: "Items whose item-rest correlation is below 0", headings: ["Item", "Label", "Correlation", "Right", "Models"], texts: true, kinds: [null, "line", "figure", "figure", "figure"],
    rows: rows.map((each) => [h("a", {href: itemPath(runId, each.item_id)}, name(each.sample_id, 80)), each.label ? name(each.label) : "–",
      [number(each.correlation), h("span", {class: "sub"}, interval(each.ci_low, each.ci_high))], number(each.right), count(each.models)])})];
}
