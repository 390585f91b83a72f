/** A table of samples and their answers: which columns there are, what a cell says, and the keys that move in it. */

import {EXPORTED} from "/js/address.js";
import {shortJudge, shortModel, verdict} from "/js/answers.js";
import {h} from "/js/dom.js";
import {beginning, name, words} from "/js/format.js";
import {itemPath, placeOf} from "/js/runs_address.js";

const MOST_COLUMNS = 12; // that are shown before the reader asks for more
const REPLY = 140; // characters of a reply in a cell
export const AXES = [["models", "Models"], ["prompts", "Prompts"], ["repeats", "Repeats"], ["judges", "Judges"], ["runs", "Runs"]];
const KEY_OF = {
  models: (answer) => answer.model, prompts: (answer) => answer.prompt_type, repeats: (answer) => String(answer.replicate),
  judges: (answer) => answer.judge ?? "no judge", runs: (answer) => answer.run_id ?? "this run",
};
const HEADING_OF = {models: shortModel, prompts: words, repeats: (key) => `repeat ${key}`, judges: shortJudge, runs: (key) => name(key)};

/** The columns of a list: all there are, and those that are shown. */
export function columnsOf(items, {across, hide}) {
  const axis = AXES.some(([key]) => key === across) ? across : "models";
  const answers = items.flatMap((item) => item.answers);
  const all = [...new Set(answers.map(KEY_OF[axis]))];
  const hidden = [hide ?? []].flat();
  const shown = all.filter((each) => !hidden.includes(each)).slice(0, MOST_COLUMNS);
  const varies = Object.keys(KEY_OF).filter((each) => each !== axis && new Set(answers.map(KEY_OF[each])).size > 1);
  return {axis, all, shown, varies, hasInput: !hidden.includes("input") && items.some((item) => item.input)};
}

/** The table. `sortBy` is told the order that a heading asks for. */
export function matrix(runId, items, {columns, wanted, looks, sortBy}) {
  const {axis, all, shown, hasInput} = columns;
  const left = all.length - shown.length;
  const heading = (text, sort, of = null) => {
    const isSorted = wanted.sort === sort && (wanted.of ?? null) === of;
    const order = isSorted && wanted.order !== "desc" ? "desc" : null;
    return h("th", {scope: "col", role: "columnheader", "aria-sort": isSorted ? (order ? "ascending" : "descending") : null},
      sort ? h("button", {type: "button", class: "bare", onclick: () => sortBy({sort, of, order})}, text, isSorted && h("span", {class: "arrow", "aria-hidden": "true"}, order ? "↑" : "↓")) : text);
  };
  const sortOf = (key) => (axis === "models" && EXPORTED === null ? "answer" : null);
  return [h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Samples and their answers, table"},
    h("table", {class: `listing items matrix${looks.dense ? " dense" : ""}`, role: "table"},
      h("caption", {class: "hidden"}, "Samples and their answers"),
      h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, heading("Sample", "sample"), hasInput && heading("Input", null),
        shown.map((key) => heading(HEADING_OF[axis](key), sortOf(key), sortOf(key) && key)))),
      h("tbody", {role: "rowgroup"}, items.map((item) => line(runId, item, {...columns, wanted, looks}))))),
  left > 0 && h("p", {class: "note"}, `${left} more under “Columns”.`)];
}

function line(runId, item, {axis, shown, varies, hasInput, wanted, looks}) {
  const truth = [item.label, item.category].filter(Boolean).map((each) => name(each, 60)).join(" · ");
  const found = item.answers.find((answer) => answer.matches && !answer.run_id);
  const to = (answer) => itemPath(answer?.run_id ?? runId, item.item_id, {...(answer?.run_id ? {} : wanted), ...looks, at: answer && placeOf(answer)});
  const cell = (key) => {
    const answers = item.answers.filter((answer) => KEY_OF[axis](answer) === key);
    return h("td", {role: "cell", "data-label": HEADING_OF[axis](key)}, answers.length ? answersOf(answers, varies, to, looks.dense) : h("span", {class: "note"}, "–"));
  };
  return h("tr", {role: "row"},
    h("th", {scope: "row", role: "rowheader"}, h("a", {class: "id", href: to(found)}, name(item.sample_id, 80)), h("span", {class: "sub"}, truth)),
    hasInput && h("td", {role: "cell", class: "excerpt"}, h("code", {}, beginning(item.input, looks.dense ? 60 : 180))),
    shown.map(cell));
}

/** Answers in a cell: each verdict leads to its place on the item's page; alike ones stand together, with one reply. */
function answersOf(answers, varies, to, dense) {
  const alike = [...Map.groupBy(answers, (each) => JSON.stringify([each.verdict, each.score, each.correct, each.error, each.matches, each.reply])).values()];
  return h("div", {class: "cell"}, alike.map((group) => {
    const whose = varies.map((each) => [...new Set(group.map((answer) => HEADING_OF[each](KEY_OF[each](answer))))].slice(0, 4).join(", ")).join(", ");
    return h("div", {class: group[0].matches === false ? "beside" : null},
      h("a", {class: "plain", href: to(group[0])}, verdict(group[0])), whose && h("span", {class: "sub"}, whose),
      !dense && group[0].reply && h("p", {class: "reply"}, beginning(group[0].reply, REPLY)));
  }));
}

/** Whether a key is meant for a field, or for the browser. */
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
}

/** Move between the links of a table by the letters of vi or by arrows; `others` are further keys and what they do. */
export function onKeys(place, signal, others) {
  addEventListener("keydown", (event) => {
    if (isTyping(event)) return;
    const inTable = event.target.closest?.("tbody") && place.contains(event.target);
    const [down, right] = {j: [1, 0], k: [-1, 0], l: [0, 1], h: [0, -1], ...(inTable && {ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1]})}[event.key] ?? [];
    if (down === undefined && !others[event.key]) return;
    event.preventDefault();
    if (down === undefined) others[event.key]();
    else move(place, event.target, down, right);
  }, {signal});
}

function move(place, from, down, right) {
  const rows = [...place.querySelectorAll("tbody tr")];
  const row = from.closest?.("tr");
  const at = rows.indexOf(row);
  if (at < 0) return rows[0]?.querySelector("a")?.focus();
  const cells = [...row.children];
  const column = cells.indexOf(from.closest("th, td"));
  const steps = down ? rows.slice(down > 0 ? at + 1 : 0, down > 0 ? undefined : at).map((each) => each.children[column])
    : cells.slice(right > 0 ? column + 1 : 0, right > 0 ? undefined : column);
  const links = (down + right > 0 ? steps : steps.reverse()).map((each) => each?.querySelector("a"));
  return links.find(Boolean)?.focus();
}
