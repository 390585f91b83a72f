/** Runs of every suite, and how its metrics moved from snapshot to snapshot. */

import {here, keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {get, queryText} from "/js/api.js";
import {COLOURS, emptyFigure, figure, legend, lines, sparkLine} from "/js/charts.js";
import {choose, chooseTag} from "/js/choose.js";
import {freshId, h, show} from "/js/dom.js";
import {beginning, count, counted, dollars, duration, interval, name, number, percent, time, visible, words} from "/js/format.js";
import {announce, heading, message, problem, showPage} from "/js/page.js";
import {pager} from "/js/pager.js";
import {comparePath, runPath, tagLinks} from "/js/runs_address.js";
import {table} from "/js/table.js";
import {flowRunLink} from "/js/pages/technical_view.js";

const ASKED = ["suite", "metric", "slice", "model", "tag", "state", "q", "filter", "sort", "reruns", "page"];
const STATES = ["running", "completed", "incomplete", "waiting", "suspended", "failed", "lost"];
const SORTS = [["", "Newest first"], ["oldest", "Oldest first"], ["value", "Highest value"], ["missing", "Most missing"], ["cost", "Highest cost"], ["samples", "Most samples"], ["calls", "Most calls"], ["suite", "Suite"], ["state", "State"]];
const SORT_OF = {Run: [null, "oldest"], Suite: ["suite"], State: ["state"], Headline: ["value"], Missing: ["missing"], Cost: ["cost"]};
const OF_LIST = ["page", "state", "q", "filter", "sort", "reruns"]; // they choose runs, but no metrics
const OF_BOTH = ["suite", "tag", "model"];
const LONGEST_MESSAGE = 80; // characters in the list; the run's page has all

export function runsPage({query, signal}) {
  const wanted = Object.fromEntries(ASKED.map((key) => [key, query.get(key)]));
  const choices = h("form", {class: "filters", "aria-label": "What is shown", onsubmit: (event) => event.preventDefault()});
  const plot = h("div");
  const listing = h("div");
  showPage(heading("Runs and metrics"), choices, h("section", {class: "panel runs"}, h("h2", {}, "Runs"), h("p", {class: "note"}, "Their tables, rule by rule: ", h("a", {href: pathOf("checks")}, "data docs of the last check")), listing), plot);
  let reading = 0;

  function change(changes) {
    Object.assign(wanted, changes);
    keepAddress(here().pathname + queryText(wanted));
    if (Object.keys(changes).some((key) => [...OF_LIST, ...OF_BOTH].includes(key))) runs(true);
    if (Object.keys(changes).some((key) => !OF_LIST.includes(key))) metrics();
  }

  async function metrics() {
    reading += 1;
    const mine = reading;
    try {
      const [answer, {tags}] = await Promise.all([
        get("/metrics", {suite: wanted.suite, metric: wanted.metric, slice: wanted.slice, tag: wanted.tag}, signal),
        get("/runs", {page_size: 1}, signal),
      ]);
      if (mine !== reading) return;
      const suite = answer.suites.find((each) => each.name === wanted.suite);
      offer(answer, suite, tags);
      const steps = (of, metric) => get("/metrics/steps", {suite: of, metric, slice: wanted.slice, model: wanted.model, tag: wanted.tag}, signal);
      show(plot, h("div", {class: "figures"}, changesSeen(answer, wanted.model), histories(answer, suite, wanted.model, steps)));
    } catch (error) {
      if (error.name !== "AbortError") show(plot, problem(error, "The metrics cannot be shown", metrics));
    }
  }

  function offer({suites, points}, suite, tags) {
    const focused = choices.contains(document.activeElement) ? document.activeElement.name : null;
    const models = [...new Set(points.map((point) => point.model))].sort();
    if (wanted.model && !models.includes(wanted.model)) models.push(wanted.model);
    show(choices,
      choice("suite", "Suite", [["", "All suites"], ...suites.map((each) => [each.name, name(each.title)])],
        (value) => change({suite: value, metric: null, slice: null, model: null, page: null})),
      suite && choice("metric", "Metric", [["", "Headline metrics"], ...suite.metrics.map((each) => [each, each])], (value) => change({metric: value})),
      suite && choice("slice", "Slice", suite.slices.map((each) => [each === "all" ? "" : each, words(each)]), (value) => change({slice: value})),
      choice("model", "Model", [["", "All models"], ...models.map((each) => [each, name(each)])], (value) => change({model: value, page: null})),
      chooseTag(tags, wanted.tag, (tag) => change({tag, page: null})),
      search(wanted.q, (q) => change({q, page: null})),
      choice("state", "State", [["", "Any"], ...STATES.map((each) => [each, each])], (state) => change({state, page: null})),
      choice("sort", "Sort by", SORTS, (sort) => change({sort, page: null})),
      choice("reruns", "Reruns and rounds", [["", "Folded"], ["true", "Each on a line"]], (reruns) => change({reruns, page: null})),
      filterBox(wanted.filter, (filter) => change({filter, page: null})));
    if (focused) choices.elements[focused]?.focus();
  }

  function choice(key, label, options, onchange) {
    return choose(key, label, options, wanted[key], (value) => onchange(value || null));
  }

  async function runs(tell = false) {
    try {
      const [answer, service] = await Promise.all([get("/runs", {...Object.fromEntries([...OF_BOTH, "state", "q", "filter", "sort", "page"].map((key) => [key, wanted[key]])), reruns: wanted.reruns ?? (wanted.tag?.startsWith("settle-") ? "true" : "false")}, signal), get("/status", {}, signal)]);
      const focused = listing.contains(document.activeElement) ? document.activeElement.dataset.keep : null;
      show(listing, answer.runs.length
        ? [runTable(answer.runs, service, wanted.sort, (sort) => change({sort, page: null})), pager(answer, (page) => change({page}))]
        : h("p", {class: "empty"}, [...OF_BOTH, "state", "q", "filter"].some((key) => wanted[key]) ? "No run fits these choices." : "No run yet. “evalake run SUITE” makes one, “evalake import FILE” takes results of other tools."));
      if (focused) listing.querySelector(`[data-keep="${focused}"]`)?.focus();
      if (tell) announce(`${counted(answer.total, "run")}, page ${answer.page} of ${answer.pages || 1}`);
    } catch (error) {
      if (error.name !== "AbortError") show(listing, problem(error, "The runs cannot be shown", runs));
    }
  }

  metrics();
  runs();
}

/** The series that left their beginning, and since when. */
function changesSeen({changes}, model) {
  const shown = model ? changes.filter((each) => each.model === model) : changes;
  return shown.length > 0 && message("warning", "Changed since its beginning", ...shown.map((each) => visible(each.message, 1000)));
}

/** One figure for each metric of the suite; of all suites, one for the first headline metric of each. */
function histories({suites, points, series}, suite, model, steps) {
  const first = new Map(suites.map((each) => [each.name, each.headline[0]]));
  const shown = model ? points.filter((point) => point.model === model) : points;
  const groups = Map.groupBy(shown.filter((point) => suite || point.metric === first.get(point.suite)), (point) => JSON.stringify([point.suite, point.metric]));
  if (!groups.size) return emptyFigure(suite ? name(suite.title) : "Metrics", "No snapshot holds such a value yet.");
  return [...groups].map(([key, group]) => {
    const [of, metric] = JSON.parse(key);
    const title = suites.find((each) => each.name === of)?.title ?? of;
    return historyFigure(`${name(title)}: ${words(metric)}`, group, series, () => steps(of, metric));
  });
}

function historyFigure(title, points, conditions, readSteps) {
  const known = points.filter((point) => Number.isFinite(point.value));
  if (!known.length) return emptyFigure(title, "Undefined in every snapshot.");
  const names = seriesNames(points, conditions);
  const snapshots = [...new Set(known.map((point) => point.snapshot_id))];
  const created = new Map(known.map((point) => [point.snapshot_id, point.created_at_us]));
  const groups = [...Map.groupBy(known, (point) => point.series)].map(([id, group]) => [names.get(id), group]);
  const newest = groups.sort(([, a], [, b]) => b.at(-1).created_at_us - a.at(-1).created_at_us).slice(0, COLOURS);
  newest.sort(([a], [b]) => (a < b ? -1 : 1)); // the same colour in every figure
  const series = newest.map(([title, group]) => ({
    name: title,
    points: group.map((point) => ({
      x: snapshots.indexOf(point.snapshot_id), y: point.value, low: point.ci_low, high: point.ci_high,
      label: `${title}, ${time(point.created_at_us)}: ${number(point.value)}, n = ${count(point.n)}`,
    })),
  }));
  const notes = ["With 95 % intervals. A line joins comparable snapshots; the table below has the paired change of each step."];
  if (groups.length > COLOURS) notes.push(`The newest ${COLOURS} of ${count(groups.length)} lines; choose a model or read the table for the others.`);
  const undefinedCount = points.length - known.length;
  if (undefinedCount) notes.push(`${counted(undefinedCount, "undefined value")} left out.`);
  const changes = new Map(points.filter((point) => point.previous_id).map((point) => [stepKey(point), h("span", {}, "…")]));
  const box = figure({
    title, note: notes.join(" "), alt: `${title} from snapshot to snapshot, one line for each model and what its values mean.`,
    draw: (width) => lines(series, width, {xLabel: (at) => time(created.get(snapshots[at]))}),
    numbers: {headings: ["Model", "Snapshot of", "Value", "95 % interval", "Change [95 %]", "n"], rows: points.toReversed().map((point) =>
      [names.get(point.series), time(point.created_at_us), number(point.value), interval(point.ci_low, point.ci_high), changes.get(stepKey(point)) ?? "–", `${count(point.n)}${point.reliable ? "" : " (few)"}`])},
  });
  box.querySelector(".plot").after(legend(series));
  if (changes.size) box.querySelector("details").addEventListener("toggle", () => fillChanges(changes, readSteps, new Map(points.map((point) => [point.snapshot_id, point.run_id]))), {once: true});
  return box;
}

/** The name of each series: its model, and of what tells it from others of that model. */
function seriesNames(points, conditions) {
  const several = new Set(points.map((point) => point.datasets)).size > 1;
  const plain = (point) => lineName(point) + (several ? ` · ${name(point.datasets ?? "unknown datasets")}` : "");
  const names = new Map();
  for (const [title, alike] of Map.groupBy(points, plain)) {
    const ids = [...new Set(alike.map((point) => point.series))];
    const differing = Object.keys(conditions[ids[0]]).filter((key) => new Set(ids.map((id) => conditions[id][key])).size > 1);
    for (const id of ids) {
      const told = differing.filter((key) => conditions[id][key]).map((key) => ` · ${key} ${visible(conditions[id][key], 60)}`);
      names.set(id, title + told.join(""));
    }
  }
  return names;
}

function stepKey(point) {
  return JSON.stringify([point.snapshot_id, point.model, point.judge, point.slice_value]);
}

/** Read the paired differences once somebody looks, for they cost a comparison each; older ones are compared by hand. */
async function fillChanges(changes, readSteps, runs) {
  try {
    const steps = new Map((await readSteps()).map((step) => [stepKey(step), step]));
    for (const [key, cell] of changes) show(cell, stepText(steps.get(key), runs));
  } catch (error) {
    if (error.name !== "AbortError") for (const cell of changes.values()) show(cell, "not read");
  }
}

function stepText(step, runs) {
  if (!step) return "older";
  if (step.message) return h("span", {title: visible(step.message, 300)}, "not comparable");
  const [a, b] = [step.snapshot_id, step.previous_id].map((id) => `${runs.get(id)}:${step.model}`);
  const path = comparePath(null, ...(a === b ? [step.snapshot_id, step.previous_id] : [a, b])); // a run may be measured twice
  return h("a", {href: path}, `${number(step.difference)} ${interval(step.ci_low, step.ci_high)}`);
}

function lineName(point) {
  const judge = point.judge ? ` · judged by ${name(point.judge)}` : "";
  const slice = point.slice === "all" ? "" : ` · ${name(point.slice_value)}`;
  return `${name(point.model)}${judge}${slice}`;
}

function runTable(runs, service, sorted, sortBy) {
  const flowRun = (run) => service.prefect_url && run.flow_run_id && h("span", {class: "sub"}, flowRunLink(service, run.flow_run_id, "in Prefect"));
  return table({
    caption: sorted ? "Runs" : "Runs, newest first",
    headings: ["Run", "Suite", "State", "Models", "Headline", "Missing", "Cost"].map((title) => sortable(title, sorted, sortBy)),
    texts: true,
    rows: runs.map((run) => [
      [h("a", {href: runPath(run.run_id)}, name(run.run_id)), run.tags.length > 0 && h("span", {class: "sub"}, tagLinks(run.tags)), run.note && h("span", {class: "sub"}, visible(run.note, 300)), run.folded > 0 && h("span", {class: "sub"}, `and ${counted(run.folded, "rerun")} without news`), run.rounds > 0 && h("span", {class: "sub"}, h("a", {href: pathOf("runs") + queryText({tag: run.tags[0]})}, `and ${counted(run.rounds, "earlier round")}`))],
      [words(run.suite), h("span", {class: "sub"}, run.datasets.includes("(") ? name(run.datasets, 60) : `${name(run.datasets, 60)}, ${counted(run.samples, "sample")}`)],
      [h("span", {class: ["failed", "incomplete", "lost"].includes(run.state) ? "state bad" : "state"}, words(run.state)), run.state === "running" && run.items_done !== null && h("span", {class: "sub"}, `${count(run.items_done)} of ${counted(run.items, "item")} done`), h("span", {class: "sub"}, `${time(run.started_at_us)}, ${duration(run.started_at_us, run.ended_at_us)}`), flowRun(run), run.message && h("span", {class: "sub"}, beginning(run.message, LONGEST_MESSAGE))],
      [names(run.models), run.judges?.length > 0 && h("span", {class: "sub"}, `judged by ${names(run.judges)}`)],
      headlineCell(run),
      [percent(run.missing_share), run.rows_quarantined > 0 && h("span", {class: "sub"}, `${count(run.rows_quarantined)} rows refused`)],
      [dollars(run.cost_usd), h("span", {class: "sub"}, `${counted(run.calls_made, "call")}, ${count(run.calls_from_ledger)} known`)],
    ]),
    kinds: [null, "line", "state-cell", "long", "figure", "tight", "calls"],
  });
}

/** A heading whose button sorts by its column; again, the other way where there is one. */
function sortable(title, sorted, sortBy) {
  const orders = SORT_OF[title];
  if (!orders) return title;
  const at = orders.indexOf(sorted);
  return h("button", {type: "button", class: "bare", "data-keep": `sort-${title}`, "aria-pressed": String(at >= 0), onclick: () => sortBy(orders[(at + 1) % orders.length])},
    title, at >= 0 && h("span", {class: "arrow", "aria-hidden": "true"}, sorted === "oldest" || sorted === "suite" || sorted === "state" ? "↑" : "↓"));
}

/** The best model's value in the metric that ranks, and a line of the same order's earlier runs. */
function headlineCell({headline, models, judges}) {
  if (!headline) return "–";
  const {metric, model, judge, value, ci_low: low, ci_high: high, n, earlier} = headline;
  const of = [models.length > 1 && name(model.split("/").at(-1), 40), judges.length > 1 && judge && `by ${name(judge, 40)}`].filter(Boolean).join(", ");
  return [h("span", {class: "whole"}, number(value), " ", earlier.length > 0 && sparkLine([...earlier, value])),
    h("span", {class: "sub breaks"}, [words(metric), `${interval(low, high)}, n = ${count(n)}`, of].filter(Boolean).map((part) => [h("span", {class: "whole"}, part), " "]))];
}

/** A filter expression over the columns of the list. */
function filterBox(chosen, onchange) {
  const id = freshId("filter");
  const box = h("input", {id, name: "filter", value: chosen ?? "", maxlength: 1000, spellcheck: "false", autocomplete: "off", placeholder: 'value > 0.8 and model ~ "gpt" and cost < 5', onchange: () => onchange(box.value.trim() || null)});
  return h("div", {class: "whole-row"}, h("label", {for: id}, "Filter"), box, h("details", {class: "note"}, h("summary", {}, "How a filter is written"),
    h("p", {}, "Columns: run, suite, dataset, state, model, judge, tag, note, metric, value, missing, cost, samples, items, calls, known; ", h("code", {}, "= != < <= > >= ~ !~ in is null and or not ( )"), "; ~ is “contains”.")));
}

function search(chosen, onchange) {
  const id = freshId("search");
  const box = h("input", {id, name: "q", type: "search", value: chosen ?? "", onchange: () => onchange(box.value || null)});
  return h("div", {}, h("label", {for: id}, "Text in run, model, tag"), box);
}

function names(list) {
  if (!list?.length) return "–";
  const few = list.slice(0, 3).map((each) => name(each.split("/").at(-1), 60)).join(", ");
  return list.length > 3 ? `${few} and ${count(list.length - 3)} more` : few;
}
