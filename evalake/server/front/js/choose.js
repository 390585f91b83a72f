/** A choice among values, under its label. */

import {freshId, h} from "/js/dom.js";
import {name} from "/js/format.js";

/** A labelled list of options, each a value and what is read; `onchange` is told the value that was chosen. */
export function choose(key, label, options, chosen, onchange) {
  const id = freshId("choice");
  const select = h("select", {id, name: key, onchange: () => onchange(select.value)},
    options.map(([value, text]) => h("option", {value, selected: value === (chosen ?? "")}, text)));
  return h("div", {}, h("label", {for: id}, label), select);
}

/** A choice of the runs with a tag; nothing where no run has any. `onchange` is told the tag, or null for all runs. */
export function chooseTag(tags, chosen, onchange) {
  const known = chosen && !tags.includes(chosen) ? [...tags, chosen] : tags;
  return known.length > 0 && choose("tag", "Tag", [["", "All runs"], ...known.map((tag) => [tag, name(tag)])], chosen, (tag) => onchange(tag || null));
}
