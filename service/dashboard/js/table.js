/** Tables that scroll inside themselves where they are wider than the page. */

import {h} from "/js/dom.js";

/** `headings`: texts; `rows`: lists of nodes or texts, the first of which names the row; `kinds`: classes of columns. */
export function table({caption, headings, rows, texts = false, kinds = []}) {
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": `${caption}, table`},
    h("table", {class: texts ? "texts" : null},
      h("caption", {class: "hidden"}, caption),
      h("thead", {}, h("tr", {}, headings.map((heading, i) => h("th", {scope: "col", class: i === 0 ? "key" : null}, heading)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, i) =>
        i === 0 ? h("th", {scope: "row", class: "key"}, cell) : h("td", {class: kinds[i]}, cell)))))));
}

/** A list of names and their values; entries without a value are left out. */
export function facts(entries) {
  return h("dl", {}, entries.filter(([, value]) => value !== null && value !== undefined).map(([what, value]) =>
    [h("dt", {}, what), h("dd", {}, value)]));
}
