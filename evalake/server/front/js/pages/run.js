/** One run: its headline with intervals, warnings, what was given up on, where its figures come from. */

import {pathOf} from "/js/addresses.js";
import {BY_DAWID_SKENE, shortJudge, shortModel} from "/js/answers.js";
import {EXPORTED} from "/js/address.js";
import {get} from "/js/api.js";
import {dots, figure} from "/js/charts.js";
import {freshId, h, show} from "/js/dom.js";
import {beginning, count, counted, dollars, duration, interval, name, number, percent, seconds, shortHash, time, visible, words} from "/js/format.js";
import {heading, message, problem, showPage} from "/js/page.js";
import {comparePath, explorePath, itemsPath, runPath, tagLinks} from "/js/runs_address.js";
import {suspiciousItems} from "/js/suspicious.js";
import {facts, table} from "/js/table.js";
import {verbatim} from "/js/text.js";
import {flowRunLink} from "/js/pages/technical_view.js";

const LOOK_AGAIN = 5000; // milliseconds between two looks at a run that is under way
const LONG_MESSAGE = 240; // characters
const MOST_AT_ONCE = 2; // warnings before the others are folded
const WAITED_LONG = 1000; // milliseconds of waiting that are worth telling

export function runPage({parts: [runId], signal}) {
  const trail = h("p", {class: "trail"}, h("a", {href: pathOf("runs")}, "Runs"), " › ", name(runId));
  const body = h("div");
  showPage(trail, heading(`Run ${name(runId, 60)}`), body);

  async function load() {
    try {
      const [detail, service] = await Promise.all([get(runPath(runId), {}, signal), get("/status", {}, signal)]);
      show(body, whole(detail, service, signal));
      if (detail.run.state === "running" && !EXPORTED) setTimeout(() => !signal.aborted && load(), LOOK_AGAIN);
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The run cannot be shown", load));
    }
  }

  load();
}

function whole(detail, service, signal) {
  const {run} = detail;
  return [
    h("p", {class: "note"}, `${name(detail.suite_title)} · ${words(run.state)} · began ${time(run.started_at_us)}, took ${duration(run.started_at_us, run.ended_at_us)}`),
    run.tags.length > 0 && h("p", {class: "note"}, "Tags: ", tagLinks(run.tags)),
    run.note && h("p", {}, visible(run.note, 2000)),
    h("p", {class: "actions"}, h("a", {class: "button primary", href: itemsPath(run.run_id)}, `Read its ${counted(detail.items, "sample")}`),
      hasWrong(detail) && h("a", {class: "button", href: itemsPath(run.run_id, {correct: "false"})}, "Only wrong answers"),
      run.models.length > 1 && h("a", {class: "button", href: itemsPath(run.run_id, {differ: "models"})}, "Where models differ"),
      run.snapshot_id && run.models.length > 1 && h("a", {class: "button", href: comparePath(run.run_id, run.models[0], run.models[1])}, "Compare models"),
      run.judges.length > 1 && h("a", {class: "button", href: itemsPath(run.run_id, {differ: "judges"})}, "Where judges differ"),
      run.snapshot_id && h("a", {class: "button", href: explorePath(run.run_id)}, "Explore its metrics"),
      service.writes && h("a", {class: "button", href: pathOf("grade", run.run_id)}, "Label results")),
    run.state === "running" && progress(detail),
    run.message && message(run.state === "completed" ? "info" : "warning", null, ...told(run.message)),
    detail.warnings.length > 0 && message("warning", "What to know of the figures", ...folded(detail.warnings, "warning")),
    tiles(detail),
    drawn(detail),
    headline(detail, signal),
    coverage(detail),
    detail.values.length > 0 && allValues(run.run_id, signal),
    chances(detail),
    !EXPORTED && suspiciousItems(run.run_id, signal),
    batchJobs(detail),
    givenUp(detail),
    provenance(detail, service),
  ];
}

/** A message whole where it is short; else its beginning, and the whole under a line that opens. */
function told(text) {
  if (text.length <= LONG_MESSAGE) return [visible(text)];
  return [beginning(text, LONG_MESSAGE), h("details", {}, h("summary", {}, "The whole message"), h("p", {}, visible(text)))];
}

/** The first texts, and the others under a line that opens. */
function folded(texts, noun) {
  const shown = texts.map((each) => visible(each, 2000)), rest = shown.slice(MOST_AT_ONCE);
  return [...shown.slice(0, MOST_AT_ONCE), ...(rest.length ? [h("details", {}, h("summary", {}, `${count(rest.length)} more ${noun}${rest.length === 1 ? "" : "s"}`), rest.map((each) => h("p", {}, each)))] : [])];
}

function progress({run, answered}) {
  const done = run.items_done ?? answered;
  return h("p", {class: "progress"}, h("progress", {max: 1, value: run.items ? done / run.items : null, "aria-label": "Items done so far"}),
    `${count(done)} of ${counted(run.items, "item")} done`);
}

/** What the run may cost and how many calls it may make; null where nobody said. */
function ceiling({max_cost_usd: usd, max_calls: calls}) {
  return [usd && dollars(usd), calls && counted(calls, "call")].filter(Boolean).join(", ") || null;
}

/** What was expected of the run as it began, as `--dry-run` says it: of how many calls, and the cost; null where nobody estimated it. */
function expected({estimate}) {
  if (!estimate) return null;
  const {calls, usd_low: low, usd_high: high} = estimate;
  const cost = low === null ? "unknown" : low === high ? dollars(low) : `${dollars(low)} to ${dollars(high)}`;
  return [`Estimated for ${counted(calls.to_make, "call")}`, cost];
}

function tiles({run, items, waiting, parameters}) {
  const waited = waiting.reduce((sum, each) => sum + (each.waited_ms ?? 0) + (each.queue_ms ?? 0), 0);
  const retried = waiting.reduce((sum, each) => sum + each.retried, 0);
  const shown = [
    [plural(items, "Sample"), count(items)], [plural(run.models.length, "Model"), count(run.models.length)], run.judges.length > 0 && [plural(run.judges.length, "Judge"), count(run.judges.length)],
    ["Cost", dollars(run.cost_usd)], expected(parameters),
    ceiling(parameters) && ["May spend", ceiling(parameters)], ["Calls made", count(run.calls_made)], ["From the ledger", count(run.calls_from_ledger)],
    ["Calls given up on", count(run.calls_failed)], run.rows_quarantined > 0 && ["Rows refused", count(run.rows_quarantined)],
    retried > 0 && ["Answered after retries", count(retried)], waited > WAITED_LONG && ["Waited for limits, all calls", seconds(waited / 1000)],
  ].filter(Boolean);
  return h("ul", {class: "tiles", "aria-label": "In figures"}, shown.map(([what, value]) =>
    h("li", {}, h("span", {class: "value"}, value), h("span", {class: "what"}, what))));
}

function plural(value, noun) {
  return value === 1 ? noun : `${noun}s`;
}

/** Whether answers are right or wrong in this suite, and some are wrong. */
function hasWrong({choices}) {
  return choices.correct.some(({value}) => value === "false");
}

const MOST_COLUMNS = 4; // of headline metrics, which fit at 1,024 pixels

function headline(detail, signal) {
  const {run, values} = detail;
  if (!values.length) return h("p", {class: "empty"}, run.state === "running" ? "It is measured when it ends." : "It was not measured.");
  const all = [...new Set(values.map((each) => each.metric))], metrics = all.slice(0, MOST_COLUMNS), further = all.slice(MOST_COLUMNS);
  const rows = [...Map.groupBy(values, keyOf)].map(([key, group]) => [JSON.parse(key), group]);
  const lacks = missingBy(detail);
  rows.sort(([, a], [, b]) => worst(firstOf(b, metrics[0])) - worst(firstOf(a, metrics[0]))); // until the ranking comes
  const judged = rows.some(([[, judge]]) => judge);
  const byDawidSkene = rows.some(([[, judge]]) => judge?.startsWith(BY_DAWID_SKENE));
  const wrong = hasWrong(detail);
  const items = (model, judge) => itemsPath(run.run_id, {model, judge, correct: wrong ? "false" : null});
  const places = new Map(rows.map(([key]) => [JSON.stringify(key), {letters: h("span", {}, "…"), missing: h("span", {class: "sub"}, lacking(lacks.get(JSON.stringify(key))))}]));
  const several = rows.length > 1 && run.snapshot_id !== null;
  if (run.snapshot_id !== null) showLetters(run.run_id, places, signal);
  return h("section", {class: "panel"}, h("h2", {}, "Headline"), h("p", {class: "note"}, `With 95 % intervals${several ? "; models that share a letter are not significantly apart (5 %, Holm over all pairs of a judge)" : ""}; a model's name leads to its ${wrong ? "wrong " : ""}answers.${values.every((each) => each.reliable) ? "" : ` “few”: fewer than 30 units in some part of it, ${byDawidSkene ? "a mean of few large amounts, or few audits of Dawid and Skene" : "or a mean of few large amounts"}.`}${further.length ? ` Among all metrics, too: ${further.map(words).join(", ")}.` : ""}`),
    table({
      caption: "Headline metrics of each model", headings: ["Model", judged && "Judge", several && "Letters", ...metrics.map(words)].filter(Boolean), texts: true,
      kinds: [null, judged && "line", several && "line", ...metrics.map(() => "figure")].filter((each) => each !== false),
      rows: rows.map(([[model, judge], group]) => [[h("a", {href: items(model, judge)}, name(model)), places.get(JSON.stringify([model, judge])).missing], judged && (judge ? shortJudge(judge) : "–"),
        several && places.get(JSON.stringify([model, judge])).letters, ...metrics.map((metric) => valueCell(group.find((each) => each.metric === metric)))].filter((each) => each !== false)),
    }));
}

const MOST_DRAWN = 2; // headline metrics, side by side
const MOST_MODELS = 20; // in a drawing; the table has them all

/** The first headline metrics of several models, as one judge or the panel saw them: a dot with its interval for each. */
function drawn(detail) {
  const {values} = detail;
  const metrics = [...new Set(values.map((each) => each.metric))].slice(0, MOST_DRAWN);
  const judges = [...new Set(values.map((each) => each.judge))];
  const judge = judges.find((each) => each?.startsWith("panel:")) ?? judges[0];
  const known = (metric) => values.filter((each) => each.metric === metric && each.judge === judge && each.value !== null)
    .sort((a, b) => worst(b) - worst(a));
  const figures = metrics.map((metric) => [metric, known(metric)]).filter(([, rows]) => rows.length > 1);
  const whose = judges.length > 1 ? `As ${judge?.startsWith("panel:") ? "the panel" : shortJudge(judge)} saw it. ` : "";
  return figures.length > 0 && h("div", {class: "figures"}, figures.map(([metric, rows]) => figure({
    title: words(metric), alt: `${words(metric)}: a dot with its interval for each model.`,
    note: `${whose}With 95 % intervals${rows.length > MOST_MODELS ? `; the highest ${count(MOST_MODELS)} of ${count(rows.length)}` : ""}.`,
    draw: (width) => dots(rows.slice(0, MOST_MODELS).map((each) => ({
      label: each.model,
      dots: [{x: each.value, low: each.ci_low, high: each.ci_high, colour: 0, title: `${each.model}: ${number(each.value)} ${interval(each.ci_low, each.ci_high)}, n = ${each.n}`}],
    })), width),
  })));
}

/** The share of items that each model and judge lacks, and why; nothing for those that lack none. */
function missingBy({coverage}) {
  const groups = Map.groupBy(coverage, (each) => JSON.stringify([each.model, each.judge]));
  const sums = [...groups].map(([key, rows]) => {
    const [asked, missing] = ["asked", "missing"].map((field) => rows.reduce((sum, each) => sum + each[field], 0));
    const kinds = rows.flatMap((each) => Object.entries(each.missing_kinds)).reduce((all, [kind, n]) => all.set(kind, (all.get(kind) ?? 0) + n), new Map());
    return [key, {share: asked && missing / asked, kinds}];
  });
  return new Map(sums.filter(([, {share}]) => share > 0));
}

function lacking(missing) {
  return missing ? `${percent(missing.share)} missing: ${[...missing.kinds].map(([kind, n]) => `${count(n)} ${words(kind)}`).join(", ")}` : "";
}

/** Writes each model's letters and what it lacks, which take a while to compute, into their places, and orders the rows. */
async function showLetters(runId, places, signal) {
  try {
    const letters = await get(`${runPath(runId)}/letters`, {}, signal);
    const of = new Map(letters.map((each) => [keyOf(each), each]));
    for (const [key, place] of places) {
      show(place.letters, of.get(key)?.letters ?? "–");
      show(place.missing, visible(of.get(key)?.missing ?? "", 300));
    }
    for (const key of of.keys()) {
      const row = places.get(key)?.missing.closest("tr");
      row?.parentElement.append(row);
    }
  } catch (error) {
    if (error.name === "AbortError") return;
    for (const {letters} of places.values()) show(letters, "unknown");
  }
}

function keyOf({model, judge}) {
  return JSON.stringify([model, judge]);
}

function firstOf(group, metric) {
  return group.find((each) => each.metric === metric);
}

/** A value as the ranking orders it: the worst case of what is missing. */
function worst(value) {
  return value?.bound_low ?? value?.value ?? -Infinity;
}

function valueCell(value) {
  if (!value) return "–";
  if (value.value === null) return ["–", h("span", {class: "sub"}, `undefined, n = ${count(value.n)}`)];
  const [range, size] = [`${interval(value.ci_low, value.ci_high)},`, `n = ${count(value.n)}${value.reliable ? "" : " (few)"}`];
  return [number(value.value), h("span", {class: "sub breaks"}, h("span", {class: "whole"}, range), " ", h("span", {class: "whole"}, size))];
}

/** Every figure of the run, read when the reader asks for it. */
function allValues(runId, signal) {
  const place = h("div");
  const details = h("details", {class: "panel", ontoggle: async () => {
    if (!details.open || place.childElementCount) return;
    try {
      const values = await get(`${runPath(runId)}/values`, {}, signal);
      show(place, values.length ? bySlice(values) : h("p", {class: "empty"}, "None."));
    } catch (error) {
      if (error.name !== "AbortError") show(place, problem(error, "The figures cannot be shown", null));
    }
  }}, h("summary", {}, "All figures"), place);
  return details;
}

/** The figures over all samples, or by the parts of a slice that the reader chooses. */
function bySlice(values) {
  const of = Map.groupBy(values, (each) => each.slice);
  const choice = h("select", {id: freshId("slice"), onchange: () => show(place, figures(choice.value, of.get(choice.value)))},
    [...of.keys()].map((slice) => h("option", {value: slice}, slice === "all" ? "all samples together" : `by ${words(slice)}`)));
  const place = h("div", {}, figures(choice.value, of.get(choice.value)));
  const note = h("p", {class: "note"}, "Of the intervals of many parts, about 1 in 20 misses its value by chance.");
  return [note, h("p", {class: "actions"}, h("label", {for: choice.id}, "Figures of"), choice), place];
}

function figures(slice, values) {
  const parts = slice !== "all";
  const judged = values.some((each) => each.judge);
  const columns = [["Metric", null], parts && [words(slice), "line"], ["Model", "line"], judged && ["Judge", "line"], ["Value", "figure"]].filter(Boolean);
  return table({caption: parts ? `All figures by ${words(slice)}` : "All figures over all samples", headings: columns.map(([title]) => title), texts: true, kinds: columns.map(([, kind]) => kind),
    rows: values.map((each) => [words(each.metric), parts && name(each.slice_value, 80), name(each.model), judged && (each.judge ? shortJudge(each.judge) : "–"), valueCell(each)].filter((cell) => cell !== false))});
}

/** Links to the items of each kind: what was marked, what each category holds. */
function chances({run, choices}) {
  const groups = [["flag", "Marked as"], ["error", "Without an answer"], ["category", "Category"]].filter(([key]) => choices[key].length);
  if (!groups.length) return null;
  return h("section", {class: "panel"}, h("h2", {}, "Samples by kind"), groups.map(([key, title]) => h("div", {}, h("h3", {}, title),
    h("ul", {class: "tags"}, choices[key].map(({value, count: n}) =>
      h("li", {}, h("a", {href: itemsPath(run.run_id, {[key]: value})}, key === "flag" ? words(value) : name(value, 80)), ` ${count(n)}`))))));
}

/** What came of the items of each model, judge and dataset: answered, without a verdict, missing and why. */
function coverage({coverage_table: {headings, rows}}) {
  if (!rows.length) return null;
  return h("section", {class: "panel"}, h("h2", {}, "Asked and answered"), table({
    caption: "Items of each model, judge and source", headings: headings.map((each) => each[0].toUpperCase() + each.slice(1)), texts: true,
    rows: rows.map((cells) => cells.map((cell) => visible(cell, 500))),
  }));
}

function givenUp({given_up: kinds}) {
  if (!kinds.length) return null;
  return h("section", {class: "panel"}, h("h2", {}, "Calls given up on, in all attempts"), table({
    caption: "Calls given up on, by model and reason", headings: ["Model", "Reason", "Calls", "One of the messages"], texts: true, kinds: [null, "line", null, "long"],
    rows: kinds.map((each) => [name(each.model), words(each.kind), count(each.count), visible(each.message, 500)]),
  }));
}

/** The batch jobs of the run, and how far each is. */
function batchJobs({jobs}) {
  if (!jobs.length) return null;
  return h("section", {class: "panel"}, h("h2", {}, "Batch jobs"), table({
    caption: "Batch jobs of the run", headings: ["Job", "Model", "State", "Answered", "Failed", "Until", "Message"], texts: true,
    rows: jobs.map((each) => [name(each.job_id), name(each.model), words(each.state), `${count(each.done)} of ${count(each.requests)}`, count(each.failed),
      each.expires_at_us === null ? "unknown" : time(each.expires_at_us), each.message === null ? "" : visible(each.message, 300)]),
  }));
}

function provenance({run, provenance: from, parameters, dataset_versions: versions}, service) {
  return h("section", {class: "panel"}, h("h2", {}, "Where it comes from"), facts([
    ["Origin", run.origin === "import" ? "recorded results were imported" : "models were called"],
    ["Models", run.models.map(shortModel).join(", ") || null], ["Judges", run.judges.map(shortJudge).join(", ") || null],
    ["Datasets", Object.entries(versions).map(([dataset, version]) => `${name(dataset)} (${shortHash(version)})`).join(", ") || null],
    ["Snapshot", from.snapshot_id ? h("code", {}, from.snapshot_id) : null],
    ["Scorer", from.scorer_version ? `version ${name(from.scorer_version)}` : null], ["evalake", from.code_version ? name(from.code_version) : null],
    ["Flow run", flowRunLink(service, run.flow_run_id, "in Prefect")],
  ]),
  h("details", {}, h("summary", {}, "Parameters and table versions"), verbatim(JSON.stringify({parameters, ...from}, null, 2), "Parameters and table versions")));
}
