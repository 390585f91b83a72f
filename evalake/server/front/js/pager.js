/** Moves through the pages of a list. */

import {h} from "/js/dom.js";
import {count} from "/js/format.js";

/** `answer`: page, pages, total; `go` is called with the page that is wanted. */
export function pager(answer, go) {
  const pages = Math.max(1, answer.pages);
  const step = (label, to, key) => {
    const isThere = to >= 1 && to <= pages;
    const button = {type: "button", "data-keep": key, "aria-disabled": isThere ? null : "true"};
    return h("button", {...button, onclick: () => isThere && go(to)}, label); // one that is disabled would lose the focus
  };
  return h("nav", {class: "pager", "aria-label": "Pages of the list"},
    step("Previous", answer.page - 1, "previous"), h("span", {}, `Page ${count(answer.page)} of ${count(pages)}`),
    step("Next", answer.page + 1, "next"), h("span", {class: "note"}, `${count(answer.total)} in all`));
}
