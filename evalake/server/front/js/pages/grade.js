/** The draw of a run, line by line, for one annotator; and how far annotators agree. */

import {here, keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {get, queryText} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, interval, name, number, words} from "/js/format.js";
import {heading, message, problem, showPage} from "/js/page.js";
import {annotator, lineForm, nameForm, progress, wasSeen} from "/js/grading.js";
import {runPath} from "/js/runs_address.js";
import {table} from "/js/table.js";

export function gradePage({parts: [runId], query, signal}) {
  const wanted = {after: query.get("after"), more: query.get("more")};
  const [who, body, agreed] = [h("div"), h("div"), h("div")];
  const trail = h("p", {class: "trail"}, h("a", {href: pathOf("runs")}, "Runs"), " › ", h("a", {href: runPath(runId)}, name(runId)));
  showPage(trail, heading("Label results"), who, body, agreed);

  function change(changes) {
    Object.assign(wanted, changes);
    keepAddress(here().pathname + queryText(wanted));
    load();
  }

  async function load() {
    if (!(await writes())) return;
    show(who, h("details", {open: !annotator()}, h("summary", {}, annotator() ? `As ${name(annotator())}` : "Who labels"), nameForm(() => change({after: null}))));
    if (!annotator()) return show(body, h("p", {class: "note"}, "The draw asks the suite's questions about its most informative answers, one after the other. Each label lands in the table human_labels, with your name."));
    try {
      const queue = await get(`${runPath(runId)}/grading`, {annotator: annotator(), ...wanted}, signal);
      const skip = () => change({after: queue.next.number});
      if (queue.next?.blind && wasSeen(queue.next.key.sample_hash)) return skip(); // no longer blind
      show(body, progress(queue), queue.next ? [
        h("p", {class: "note keys"}, h("kbd", {}, "1"), " to ", h("kbd", {}, "9"), " answer, ", h("kbd", {}, "Enter"), " keeps, ", h("kbd", {}, "s"), " skips"),
        h("section", {class: "panel"}, lineForm(runId, queue.next, {signal, after: load, skip})),
      ] : finished(queue));
      body.querySelector("form")?.scrollIntoView({block: "nearest"});
      agreement();
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The draw cannot be shown", load));
    }
  }

  async function writes() {
    try {
      if ((await get("/status", {}, signal)).writes) return true;
      show(body, message("info", "These pages only read", "To label results here, start them with: evalake view --write"));
      agreement();
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The service does not say whether it writes", load));
    }
    return false;
  }

  function finished({total, done}) {
    const left = total - done;
    return message("info", left ? "No line follows" : "All of it is answered",
      total === 0 ? "Nothing is left to be drawn: everything has a label." : left ? `You skipped ${count(left)}.` : "Another person may label the same draw, under their own name.",
      h("p", {class: "actions"}, left > 0 && h("button", {type: "button", onclick: () => change({after: null})}, "Go to those skipped"),
        h("button", {type: "button", onclick: () => change({after: null, more: true})}, "Draw more")));
  }

  async function agreement() {
    try {
      const rows = await get(`${runPath(runId)}/grading/agreement`, {}, signal);
      show(agreed, h("section", {class: "panel"}, h("h2", {}, "Agreement between people"), rows.length ? agreementTable(rows)
        : h("p", {class: "empty"}, "No two people have answered the same questions yet.")));
    } catch (error) {
      if (error.name !== "AbortError") show(agreed);
    }
  }

  load();
}

function agreementTable(rows) {
  const withInterval = (value, low, high) => [number(value), h("span", {class: "sub"}, value === null ? "nothing varies" : interval(low, high))];
  return [h("p", {class: "note"}, "Kappa is Cohen's; of numbers, weighed by the square of their difference. Intervals are of 95 %, over clusters of samples."),
    table({caption: "Agreement of every two people, by question", headings: ["People", "Question", "Agreement", "Kappa", "Labels", "Units"], texts: true, kinds: [null, null, "figure", "figure", "figure", "figure"],
      rows: rows.map((row) => [name(row.judge), words(row.decision), withInterval(row.agreement, row.ci_low, row.ci_high), withInterval(row.kappa, row.kappa_low, row.kappa_high),
        count(row.n), [count(row.units), !row.reliable && h("span", {class: "sub"}, "under 30")]])})];
}
