/** The list of sessions and their scores: filtered, sorted, paged, and kept up to date. */

import {here, keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {get, queryText} from "/js/api.js";
import {badge} from "/js/badge.js";
import {h, show} from "/js/dom.js";
import {count, counted, duration, name, time, words} from "/js/format.js";
import {listen} from "/js/live.js";
import {announce, heading, message, problem, showPage} from "/js/page.js";
import {pager} from "/js/pager.js";
import {after} from "/js/scoring.js";
import {manyScorings} from "/js/pages/many_scorings.js";
import {asked, filterForm, FILTERS, firstOrder, refill} from "/js/pages/session_filters.js";

/** Show the list; `query` is what the address asks for. */
export function sessionsPage({query, signal}) {
  const wanted = Object.fromEntries([...query].filter(([key]) => [...FILTERS, "sort", "order", "page"].includes(key)));
  const results = h("section", {"aria-label": "Sessions"});
  const form = filterForm(wanted, (changed) => load({...wanted, ...changed, page: null}, true));
  const news = h("div");
  showPage(h("div", {class: "title"}, heading("Sessions"), manyScorings()), form, news, results);
  const cells = new Map(); // session id -> its score and the cell that shows it
  const added = new Set(); // sessions that came since the list was read
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
      added.clear();
      show(news);
      const sort = (by) => load({sort: by, order: (wanted.sort ?? "time") === by ? reverse(wanted.order) : firstOrder(by), page: null}, true);
      const focused = results.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
      show(results, listing(answer, wanted, sort, cells), pager(answer, (page) => load({page}, true)));
      refill(form, wanted, answer.choices);
      if (focused) results.querySelector(`[data-keep="${focused}"]`)?.focus();
      if (tell) announce(`${counted(answer.total, "session")}, page ${answer.page} of ${answer.pages || 1}`);
    } catch (error) {
      if (error.name !== "AbortError") show(results, problem(error, "The sessions cannot be shown", () => load({})));
    } finally {
      if (!mine.aborted) results.removeAttribute("aria-busy");
    }
  }

  listen("sessions", (event) => {
    if (event.type === "session.added") {
      added.add(event.session_id);
      const said = `${counted(added.size, "new session")}.`;
      show(news, message("info", said, h("p", {}, h("button", {type: "button", onclick: () => load({}, true)}, "Show the list anew"))));
      announce(said);
      return;
    }
    const row = cells.get(event.session_id);
    if (!row) return;
    row.score = after(row.score, event);
    show(row.cell, scoreCell(event.session_id, row.score));
  }, signal);
  load({});
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
      h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, columnHead("Session", "session"), columnHead("Score", "score"), columnHead("Ended as", "session_status"),
        columnHead("Began", "time"), columnHead("Took", "duration"), columnHead("Tool calls", "tool_calls"), columnHead("Scored", "scored_at"))),
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

function reverse(order) {
  return order === "asc" ? "desc" : "asc";
}

function address(id) {
  return pathOf("session", id);
}
