/** Tables: of figures, which scroll inside themselves, and of texts, whose rows become cards where it is narrow. */

import {h} from "/js/dom.js";

/**
 * `headings`: texts; `rows`: lists of nodes or texts, the first of which names the row; `kinds`: classes of columns.
 * Cards are no table to a browser any more, so tables of texts say in roles what they are.
 */
export function table({caption, headings, rows, texts = false, kinds = []}) {
  const role = (what) => (texts ? what : null);
  const columnHead = (heading, i) => h("th", {scope: "col", role: role("columnheader"), class: i === 0 ? "key" : null}, heading);
  const label = (heading) => heading?.textContent ?? heading;
  const cell = (content, i) => (i === 0
    ? h("th", {scope: "row", role: role("rowheader"), class: "key"}, content)
    : h("td", {class: kinds[i], role: role("cell"), "data-label": texts && label(headings[i])}, content));
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": `${caption}, table`},
    h("table", {class: texts ? "texts" : null, role: role("table")},
      h("caption", {class: "hidden"}, caption),
      h("thead", {role: role("rowgroup")}, h("tr", {role: role("row")}, headings.map(columnHead))),
      h("tbody", {role: role("rowgroup")}, rows.map((cells) => h("tr", {role: role("row")}, cells.map(cell))))));
}

/** A list of names and their values; entries without a value are left out. */
export function facts(entries) {
  return h("dl", {}, entries.filter(([, value]) => value !== null && value !== undefined).map(([what, value]) =>
    [h("dt", {}, what), h("dd", {}, value)]));
}
