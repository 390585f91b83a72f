/** What the list of sessions is filtered and sorted by: the form, and how the API is asked for it. */

import {freshId, h, show} from "/js/dom.js";
import {name} from "/js/format.js";

const STATUSES = [["", "Any"], ["completed", "Scored"], ["not_scored", "Not scored"], ["pending", "Pending"], ["in_progress", "Scoring"], ["failed", "Failed"]];
const CRITERIA = [["", "Any"], ["current", "Current"], ["obsolete", "Obsolete"]];
const ENDINGS = [["", "Any"], ["completed", "Completed"], ["failed", "Failed"], ["cancelled", "Cancelled"], ["timed_out", "Timed out"]];
const SORTS = [
  ["time", "Newest session", "Oldest session"], ["score", "Best score", "Worst score"],
  ["scored_at", "Scored last", "Scored first"], ["asked_at", "Asked for last", "Asked for first"],
  ["duration", "Longest session", "Shortest session"], ["tool_calls", "Most tool calls", "Fewest tool calls"],
];
const NAMED = [
  ["session", "Session"], ["alert_type", "Alert type"], ["agent", "Agent"], ["session_status", "Ended as"],
  ["status", "Scoring"], ["scored_by", "Scored by"],
]; // what sorts by its letters, from A on unless asked otherwise
const FIRST = ["search", "status", "min_score", "max_score", "criteria", "from", "to"];
const MORE = [
  "session_status", "alert_type", "agent", "scored_by", "scored_from", "scored_to", "min_seconds", "max_seconds",
  "min_tool_calls", "max_tool_calls",
];
const CHOSEN = {alert_type: "alert_types", agent: "agents", scored_by: "scored_by"}; // filters -> the API's choices
const SEARCH_WAIT = 300; // milliseconds after the last key

/** The filters by their names in the address. */
export const FILTERS = [...FIRST, ...MORE];

/** The order in which a column is sorted first. */
export function firstOrder(by) {
  return NAMED.some(([each]) => each === by) ? "asc" : "desc";
}

/** From the names in the address to those of the API. */
export function asked({from, to, scored_from: scoredFrom, scored_to: scoredTo, ...rest}) {
  const days = {from_us: midnight(from), to_us: endOf(to), scored_from_us: midnight(scoredFrom), scored_to_us: endOf(scoredTo)};
  return {...rest, ...days};
}

/** The form; `apply` is called with all filters and the order when one of them has changed. */
export function filterForm(wanted, apply) {
  let waiting = null;
  const form = h("form", {class: "filters", role: "search", "aria-label": "Filter the sessions", onsubmit: (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    apply(values(form));
  }, onchange: ({target}) => target.name !== "search" && apply(values(form)), oninput: ({target}) => {
    if (target.name !== "search") return;
    clearTimeout(waiting);
    waiting = setTimeout(() => apply(values(form)), SEARCH_WAIT);
  }},
    field("Search", h("input", {type: "search", name: "search", maxlength: 200, value: wanted.search, placeholder: "Session, alert, agent"}), "search"),
    field("Scoring", select("status", STATUSES, wanted.status)),
    range("Score", ["min_score", "Lowest score", "0"], ["max_score", "Highest score", "100"], wanted),
    field("Criteria", select("criteria", CRITERIA, wanted.criteria)),
    day("Began from", "from", wanted),
    day("Began until", "to", wanted),
    field("Sort by", select("sorting", sortings(), sorting(wanted))),
    h("div", {class: "actions"}, h("button", {type: "button", onclick: () => {
      for (const each of FILTERS) form.elements[each].value = "";
      apply(values(form));
    }}, "Clear the filters")),
    h("details", {open: MORE.some((each) => wanted[each])}, h("summary", {}, "More filters"), h("div", {class: "filters"},
      field("Ended as", select("session_status", ENDINGS, wanted.session_status)),
      field("Alert type", select("alert_type", options([], wanted.alert_type), wanted.alert_type)),
      field("Agent", select("agent", options([], wanted.agent), wanted.agent)),
      field("Scored by", select("scored_by", options([], wanted.scored_by), wanted.scored_by)),
      day("Scored from", "scored_from", wanted),
      day("Scored until", "scored_to", wanted),
      range("Took, in seconds", ["min_seconds", "Shortest, in seconds", "0"], ["max_seconds", "Longest, in seconds", "any"], wanted),
      range("Tool calls", ["min_tool_calls", "Fewest tool calls", "0"], ["max_tool_calls", "Most tool calls", "any"], wanted))));
  return form;
}

/** Show in the form what the list is sorted by, and what there is to choose from. */
export function refill(form, wanted, choices) {
  form.elements.sorting.value = sorting(wanted);
  for (const [each, key] of Object.entries(CHOSEN)) {
    const control = form.elements[each];
    const chosen = control.value;
    show(control, optionsOf(options(choices[key], chosen), chosen));
  }
}

function sorting({sort = "time", order = "desc"}) {
  return `${sort}-${order}`;
}

function sortings() {
  const named = NAMED.flatMap(([key, label]) => [[`${key}-asc`, `${label}, A to Z`], [`${key}-desc`, `${label}, Z to A`]]);
  return [...SORTS.flatMap(([key, falling, rising]) => [[`${key}-desc`, falling], [`${key}-asc`, rising]]), ...named];
}

function values(form) {
  const [sort, order] = form.elements.sorting.value.split("-");
  const filters = FILTERS.map((each) => [each, form.elements[each].value.trim() || null]);
  return {...Object.fromEntries(filters), sort, order};
}

function options(found, chosen) {
  const all = chosen && !found.includes(chosen) ? [chosen, ...found] : found;
  return [["", "Any"], ...all.map((each) => [each, name(each, 60)])];
}

function field(label, control, kind = null) {
  control.id = freshId("field");
  return h("div", {class: kind}, h("label", {for: control.id}, label), control);
}

function day(label, key, wanted) {
  return field(label, h("input", {type: "date", name: key, value: wanted[key]}));
}

function range(label, lowest, highest, wanted) {
  const [low, high] = [lowest, highest].map(([key, said, placeholder]) =>
    h("input", {type: "number", name: key, min: 0, max: label === "Score" ? 100 : null, value: wanted[key], "aria-label": said, placeholder}));
  return h("fieldset", {}, h("legend", {}, label), h("div", {class: "range"}, low, "–", high));
}

function select(key, given, chosen) {
  return h("select", {name: key}, optionsOf(given, chosen));
}

function optionsOf(given, chosen) {
  return given.map(([value, text]) => h("option", {value, selected: value === (chosen ?? "")}, text));
}

/** The last microsecond of a reader's day. */
function endOf(date) {
  const end = midnight(date, 1);
  return end === null ? null : end - 1;
}

/** The reader's midnight at which a day begins, some days later, in microseconds since 1970. */
function midnight(date, later = 0) {
  const at = new Date(date ? `${date}T00:00:00` : NaN);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? null : at.getTime() * 1000;
}
