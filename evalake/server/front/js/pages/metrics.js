/** A run's figures, looked at from any side: two metrics against each other, one by its slices, how judges agree. */

import {shortJudge, shortModel} from "/js/answers.js";
import {here, keepAddress} from "/js/address.js";
import {get, queryText} from "/js/api.js";
import {COLOURS, dots, emptyFigure, figure, legend, scatter} from "/js/charts.js";
import {choose, chooseTag} from "/js/choose.js";
import {h, show} from "/js/dom.js";
import {count, interval, name, number, words} from "/js/format.js";
import {heading, problem, showPage} from "/js/page.js";
import {itemsPath, runPath} from "/js/runs_address.js";

const ASKED = ["tag", "run", "judge", "x", "y", "metric", "slice"];
const ALL = "all"; // judges
const MOST_PARTS = 40; // of a slice that are drawn

export function metricsPage({query, signal}) {
  const wanted = Object.fromEntries(ASKED.map((key) => [key, query.get(key)]));
  const choices = h("form", {class: "filters roomy", "aria-label": "What is shown", onsubmit: (event) => event.preventDefault()});
  const [links, plots] = [h("p", {class: "actions"}), h("div")];
  showPage(heading("Metrics"), choices, links, plots);

  async function load() {
    try {
      const {runs, tags} = await get("/runs", {tag: wanted.tag, page_size: 200}, signal);
      const measured = runs.filter((run) => run.snapshot_id);
      const run = measured.find((each) => each.run_id === wanted.run)?.run_id ?? wanted.run ?? measured[0]?.run_id;
      if (!run) {
        const none = wanted.tag ? `No run tagged ${name(wanted.tag)} was measured.` : "No run was measured yet. “evalake run SUITE” makes one.";
        show(choices, tagChoice(tags));
        show(links);
        return show(plots, h("p", {class: "empty"}, none));
      }
      const [detail, values] = await Promise.all([get(runPath(run), {}, signal), get(`${runPath(run)}/values`, {}, signal)]);
      draw({runs: measured, tags}, detail, values);
    } catch (error) {
      if (error.name !== "AbortError") show(plots, problem(error, "The metrics cannot be shown", load));
    }
  }

  function change(changes) {
    Object.assign(wanted, changes);
    keepAddress(here().pathname + queryText(wanted));
  }

  function tagChoice(tags) {
    return chooseTag(tags, wanted.tag, (tag) => {
      change({tag, run: null});
      load();
    });
  }

  function draw({runs, tags}, detail, every) {
    const judges = [...new Set(every.map((each) => each.judge))].filter(Boolean);
    const judge = wanted.judge === ALL ? null : judges.includes(wanted.judge) ? wanted.judge : usualJudge(every, judges);
    const values = judge ? every.filter((each) => each.judge === judge) : every;
    const metrics = [...new Set(values.filter((each) => each.slice === "all").map((each) => each.metric))];
    const slices = [...new Set(values.filter((each) => each.slice !== "all").map((each) => each.slice))];
    const shown = {x: wanted.x ?? metrics[0], y: wanted.y ?? metrics[1] ?? metrics[0], metric: wanted.metric ?? metrics[0]};
    const partsOf = (slice) => new Set(values.filter((each) => each.slice === slice && each.metric === shown.metric).map((each) => each.slice_value)).size;
    const ofMetric = slices.filter((slice) => partsOf(slice) > 0);
    shown.slice = ofMetric.includes(wanted.slice) ? wanted.slice : ofMetric.find((slice) => partsOf(slice) > 1) ?? ofMetric[0];
    const redraw = (changes) => {
      change(changes);
      if ("run" in changes) load();
      else draw({runs, tags}, detail, every);
    };
    const {run} = detail;
    const focused = choices.contains(document.activeElement) ? document.activeElement.name : null;
    const choice = (key, label, names, told = words) => choose(key, label, names.map((each) => [each, told(each)]), key === "run" ? run.run_id : shown[key], (value) => redraw({[key]: value}));
    show(choices, tagChoice(tags),
      choice("run", "Run", [...new Set([run.run_id, ...runs.map((run) => run.run_id)])], (id) => {
        const {suite} = runs.find((each) => each.run_id === id) ?? run;
        return `${name(id)} (${words(suite)})`;
      }),
      judges.length > 1 && choose("judge", "Judge", [[ALL, "All judges"], ...judges.map((each) => [each, shortJudge(each)])], judge ?? ALL, (value) => redraw({judge: value})),
      choice("x", "Across", metrics), choice("y", "Against", metrics), choice("metric", "By its slices", metrics),
      ofMetric.length > 0 && choice("slice", "Slice", ofMetric));
    if (focused) choices.elements[focused]?.focus();
    show(links, h("a", {class: "button", href: runPath(run.run_id)}, "The run"),
      run.models.length > 1 && h("a", {class: "button", href: itemsPath(run.run_id, {differ: "models"})}, "Where models differ"),
      run.judges.length > 1 && h("a", {class: "button", href: itemsPath(run.run_id, {differ: "judges"})}, "Where judges differ"));
    show(plots, h("div", {class: "figures"}, scatterFigure(values, shown), sliceFigure(values, shown.metric, shown.slice),
      detail.reliability && reliabilityFigure(values, detail.reliability), detail.agreement && run.judges.length > 1 && agreementFigure(every, detail.agreement),
      detail.by_part.map((each) => byPart(values, every, each))));
  }

  load();
}

/** Whose judgements are shown until the reader chooses: a panel's, or one judge's, where all at once would be told apart by nobody. */
function usualJudge(values, judges) {
  const subjects = new Set(values.filter((each) => each.judge).map((each) => JSON.stringify([each.model, each.judge])));
  return subjects.size <= COLOURS ? null : judges.find((each) => each.startsWith("panel:")) ?? judges[0] ?? null;
}

function whose({model, judge}) {
  return judge ? `${shortModel(model)} · ${shortJudge(judge)}` : shortModel(model);
}

/** The values that are known of a metric in a slice, one series for each model and judge. */
function seriesOf(values, keep) {
  const known = values.filter((each) => keep(each) && Number.isFinite(each.value));
  const judged = new Set(known.map((each) => each.judge)).size > 1; // of one judge, models are told apart without its name
  return [...Map.groupBy(known, (each) => JSON.stringify([each.model, each.judge])).values()].map((group) => ({name: judged ? whose(group[0]) : shortModel(group[0].model), values: group}));
}

function told(value) {
  return `${number(value.value)} ${interval(value.ci_low, value.ci_high)}, n = ${count(value.n)}${value.reliable ? "" : " (few)"}`;
}

function scatterFigure(values, {x, y}) {
  const title = `${words(y)} against ${words(x)}`;
  const of = (metric) => new Map(seriesOf(values, (each) => each.slice === "all" && each.metric === metric).map((each) => [each.name, each.values[0]]));
  const [across, up] = [of(x), of(y)];
  const points = [...across].filter(([key]) => up.has(key)).map(([key, at]) => ({name: key, x: at, y: up.get(key)}));
  if (!points.length) return emptyFigure(title, "No model has both.");
  return figure({
    title, note: "One point a model, as a judge saw it, with 95 % intervals.", alt: `${title}: one point a model.`,
    draw: (width) => scatter(points.map((p) => ({label: p.name, title: `${p.name}: ${words(x)} ${told(p.x)}; ${words(y)} ${told(p.y)}`, x: p.x.value, y: p.y.value,
      left: p.x.ci_low, right: p.x.ci_high, low: p.y.ci_low, high: p.y.ci_high})), width, {xTitle: words(x), yTitle: words(y)}),
    numbers: {headings: ["Model", words(x), words(y)], rows: points.map((p) => [p.name, told(p.x), told(p.y)])},
  });
}

/** One metric by the parts of a slice: a dot with its interval for each model. */
function sliceFigure(values, metric, slice) {
  if (!slice) return emptyFigure(words(metric), "It is measured over all samples only.");
  return partsFigure(`${words(metric)} by ${words(slice)}`, seriesOf(values, (each) => each.slice === slice && each.metric === metric));
}

/** A figure that the suite declares; nothing where the run has no such part. Of other judges where the chosen one has none. */
function byPart(values, every, {title, note, metric, slice}) {
  const ofSlice = (each) => each.slice === slice && each.metric === metric;
  const series = seriesOf(values.some(ofSlice) ? values : every, ofSlice);
  return series.length > 0 && partsFigure(title, series, note);
}

function agreementFigure(values, {metric, slice}) {
  const pairs = seriesOf(values, (each) => each.slice === slice && each.metric === metric);
  return partsFigure(`Disagreement of judges: ${words(metric)} of each pair`, pairs, "1 is full agreement, 0 what chance gives.");
}

function partsFigure(title, all, note = "") {
  if (!all.length) return emptyFigure(title, "Nothing is known of it.");
  const series = all.slice(0, COLOURS);
  const parts = [...new Set(series.flatMap((each) => each.values.map((value) => value.slice_value)))].sort();
  const intervals = all.flatMap((each) => each.values).filter((value) => Number.isFinite(value.ci_low)).length;
  const notes = ["With 95 % intervals.", intervals > 1 && `Of ${count(intervals)}, ${number(intervals / 20)} miss by chance on average.`, note];
  if (all.length > COLOURS) notes.push(`The first ${COLOURS} of ${count(all.length)} models and judges; the table has all.`);
  if (parts.length > MOST_PARTS) notes.push(`The first ${MOST_PARTS} of ${count(parts.length)} parts; the table has all.`);
  const rows = parts.slice(0, MOST_PARTS).map((part) => ({label: part, dots: series.flatMap(({name: of, values: group}, colour) =>
    group.filter((value) => value.slice_value === part).map((value) => ({colour, x: value.value, low: value.ci_low, high: value.ci_high, title: `${of}, ${name(part)}: ${told(value)}`})))}));
  const box = figure({
    title, note: notes.filter(Boolean).join(" "), alt: `${title}: a dot for each model.`, draw: (width) => dots(rows, width),
    numbers: {headings: ["Part", "Model", "Value"], rows: all.flatMap((each) => each.values.map((value) => [name(value.slice_value), each.name, told(value)]))},
  });
  box.querySelector(".plot").after(legend(series));
  return box;
}

/** How often a model was right among the answers in which it was so sure. */
function reliabilityFigure(values, {accuracy, confidence, slice}) {
  const title = "Reliability: how often right, against how sure";
  const sure = new Map(values.filter((each) => each.slice === slice && each.metric === confidence).map((each) => [JSON.stringify([each.model, each.judge, each.slice_value]), each]));
  const all = seriesOf(values, (each) => each.slice === slice && each.metric === accuracy);
  if (!all.length) return emptyFigure(title, "No model said how sure it was.");
  const points = all.slice(0, COLOURS).flatMap(({name: of, values: group}, colour) => group.flatMap((right) => {
    const stated = sure.get(JSON.stringify([right.model, right.judge, right.slice_value]));
    return Number.isFinite(stated?.value) ? [{colour, title: `${of}: stated ${number(stated.value)}, right ${told(right)}`, x: stated.value, y: right.value, low: right.ci_low, high: right.ci_high}] : [];
  }));
  const box = figure({
    title, note: "On the dashed line a model is as often right as it says; below it, it is too sure.", alt: `${title}: a point for each tenth of stated confidence.`,
    draw: (width) => scatter(points, width, {xTitle: words(confidence), yTitle: words(accuracy), range: [0, 1], diagonal: true}),
    numbers: {headings: ["Stated", "Model", "Right"], rows: all.flatMap((each) => each.values.map((value) => [name(value.slice_value), each.name, told(value)]))},
  });
  box.querySelector(".plot").after(legend(all.slice(0, COLOURS)));
  return box;
}
