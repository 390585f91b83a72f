/** The list of sessions and their scores: filtered, sorted, paged, and kept up to date. */

import {here, keepAddress} from "/js/address.js";
import {get, queryText} from "/js/api.js";
import {badge} from "/js/badge.js";
import {freshId, h, show} from "/js/dom.js";
import {count, counted, duration, name, time, words} from "/js/format.js";
import {listen} from "/js/live.js";
import {announce, heading, problem, showPage} from "/js/page.js";
import {pager} from "/js/pager.js";
import {after} from "/js/scoring.js";

const STATUSES = [["", "Any"], ["completed", "Scored"], ["not_scored", "Not scored"], ["pending", "Pending"], ["in_progress", "Scoring"], ["failed", "Failed"]];
const CRITERIA = [["", "Any"], ["current", "Current"], ["obsolete", "Obsolete"]];
const SORTS = [
  ["time-desc", "Newest session"], ["time-asc", "Oldest session"], ["score-desc", "Best score"],
  ["score-asc", "Worst score"], ["scored_at-desc", "Scored last"], ["scored_at-asc", "Scored first"],
];
const FILTERS = ["search", "status", "min_score", "max_score", "criteria", "from", "to"];
const SEARCH_WAIT = 300; // milliseconds after the last key

/** Show the list; `query` is what the address asks for. */
export function sessionsPage({query, signal}) {
  const wanted = Object.fromEntries([...query].filter(([key]) => [...FILTERS, "sort", "order", "page"].includes(key)));
  const results = h("section", {"aria-label": "Sessions"});
  const form = filterForm(wanted, (changed) => load({...wanted, ...changed, page: null}, true));
  showPage(heading("Sessions"), form, results);
  const cells = new Map(); // session id -> its score and the cell that shows it
  let asking = null;

  async function load(changes, tell = false) {
    Object.assign(wanted, changes);
    keepAddress(here().pathname + queryText(wanted));
    asking?.abort();
    asking = new AbortController();
    const mine = AbortSignal.any([signal, asking.signal]);
    results.setAttribute("aria-busy", "true");
    try {
      const answer = await get("/sessions", asked(wanted), mine);
      cells.clear();
      const sort = (by) => load({sort: by, order: wanted.sort === by && (wanted.order ?? "desc") === "desc" ? "asc" : "desc", page: null}, true);
      const focused = results.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
      show(results, listing(answer, wanted, sort, cells), pager(answer, (page) => load({page}, true)));
      form.querySelector("[name=sorting]").value = `${wanted.sort ?? "time"}-${wanted.order ?? "desc"}`;
      if (focused) results.querySelector(`[data-keep="${focused}"]`)?.focus();
      if (tell) announce(`${counted(answer.total, "session")}, page ${answer.page} of ${answer.pages || 1}`);
    } catch (error) {
      if (error.name !== "AbortError") show(results, problem(error, "The sessions cannot be shown", () => load({})));
    } finally {
      if (!mine.aborted) results.removeAttribute("aria-busy");
    }
  }

  listen("sessions", (event) => {
    const row = cells.get(event.session_id);
    if (!row) return;
    row.score = after(row.score, event);
    show(row.cell, scoreCell(event.session_id, row.score));
  }, signal);
  load({});
}

/** From the names in the address to those of the API. */
function asked({from, to, ...rest}) {
  const end = midnight(to, 1);
  return {...rest, from_us: midnight(from), to_us: end === null ? null : end - 1};
}

/** The reader's midnight at which a day begins, some days later, in microseconds since 1970. */
function midnight(date, later = 0) {
  const at = new Date(date ? `${date}T00:00:00` : NaN);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? null : at.getTime() * 1000;
}

function filterForm(wanted, apply) {
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
    h("fieldset", {}, h("legend", {}, "Score"), h("div", {class: "range"},
      h("input", {type: "number", name: "min_score", min: 0, max: 100, value: wanted.min_score, "aria-label": "Lowest score", placeholder: "0"}), "–",
      h("input", {type: "number", name: "max_score", min: 0, max: 100, value: wanted.max_score, "aria-label": "Highest score", placeholder: "100"}))),
    field("Criteria", select("criteria", CRITERIA, wanted.criteria)),
    field("Began from", h("input", {type: "date", name: "from", value: wanted.from})),
    field("Began until", h("input", {type: "date", name: "to", value: wanted.to})),
    field("Sort by", select("sorting", SORTS, `${wanted.sort ?? "time"}-${wanted.order ?? "desc"}`)),
    h("div", {class: "actions"}, h("button", {type: "button", onclick: () => {
      for (const each of FILTERS) form.elements[each].value = "";
      apply(values(form));
    }}, "Clear the filters")));
  return form;
}

function values(form) {
  const [sort, order] = form.elements.sorting.value.split("-");
  const filters = FILTERS.map((each) => [each, form.elements[each].value.trim() || null]);
  return {...Object.fromEntries(filters), sort, order};
}

function field(label, control, kind = null) {
  control.id = freshId("field");
  return h("div", {class: kind}, h("label", {for: control.id}, label), control);
}

function select(key, options, chosen) {
  return h("select", {name: key}, options.map(([value, text]) => h("option", {value, selected: value === (chosen ?? "")}, text)));
}

function listing(answer, wanted, sort, cells) {
  if (!answer.sessions.length) {
    const isFiltered = FILTERS.some((each) => wanted[each]);
    return h("p", {class: "empty"}, isFiltered ? "No session matches these filters." : "There are no sessions yet. “evalake import SOURCE --suite session_review” brings some.");
  }
  const columnHead = (label, by = null) => {
    const isSorted = by && (wanted.sort ?? "time") === by;
    const isRising = wanted.order === "asc";
    return h("th", {scope: "col", role: "columnheader", "aria-sort": isSorted ? (isRising ? "ascending" : "descending") : null},
      by ? h("button", {type: "button", class: "bare", "data-keep": by, onclick: () => sort(by)}, label,
        h("span", {class: "arrow", "aria-hidden": "true"}, isSorted ? (isRising ? " ↑" : " ↓") : "")) : label);
  };
  return h("div", {},
    h("table", {class: "listing", role: "table"},
      h("caption", {class: "hidden"}, "Sessions and their scores"),
      h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, columnHead("Session"), columnHead("Score", "score"), columnHead("Ended as"),
        columnHead("Began", "time"), columnHead("Took"), columnHead("Tool calls"), columnHead("Scored", "scored_at"))),
      h("tbody", {role: "rowgroup"}, answer.sessions.map((entry) => line(entry, cells)))));
}

function line(entry, cells) {
  const id = entry.session_id;
  const score = h("td", {class: "score tight", role: "cell"}, scoreCell(id, entry.score));
  cells.set(id, {score: entry.score, cell: score});
  const by = entry.score?.score_triggered_by;
  return h("tr", {role: "row"},
    h("th", {scope: "row", role: "rowheader"}, h("a", {class: "id", href: address(id)}, name(id)),
      h("span", {class: "sub"}, `${name(entry.alert_type)} · ${name(entry.agent)}`)),
    score,
    h("td", {class: "tight", role: "cell", "data-label": "Ended as"}, h("span", {class: entry.session_status === "completed" ? "state" : "state bad"}, words(entry.session_status))),
    h("td", {class: "tight", role: "cell", "data-label": "Began"}, time(entry.started_at_us)),
    h("td", {class: "tight", role: "cell", "data-label": "Took"}, duration(entry.started_at_us, entry.completed_at_us)),
    h("td", {role: "cell", "data-label": "Tool calls"}, count(entry.tool_calls)),
    h("td", {role: "cell", "data-label": "Scored"}, time(entry.score?.completed_at_us), " ", by && h("span", {class: "sub"}, `by ${name(by)}`)));
}

function scoreCell(id, score) {
  const isObsolete = score?.status === "completed" && score.current_prompt_used === false;
  return [
    h("a", {class: "badge-link", href: address(id), "aria-label": `Score of ${name(id)}: ${badge(score).textContent}`}, badge(score)),
    isObsolete && h("span", {class: "sub"}, "outdated criteria"),
  ];
}

function address(id) {
  return `/sessions/${encodeURIComponent(id)}`;
}
