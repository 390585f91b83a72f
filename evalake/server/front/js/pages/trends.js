/** Scores as a whole: how they are spread, how they move under which criteria, which tools are missed, and what that costs. */

import {get} from "/js/api.js";
import {band} from "/js/badge.js";
import {columns, emptyFigure, figure, legend, lines, rows} from "/js/charts.js";
import {h, show, showAgain} from "/js/dom.js";
import {count, counted, day, interval, name, number, shortHash, words} from "/js/format.js";
import {listen} from "/js/live.js";
import {heading, problem, showPage} from "/js/page.js";
import {scoreAll} from "/js/pages/many_scorings.js";
import {roadmapFigures} from "/js/pages/roadmap.js";

const RANKED = 12; // bars of a ranking
const REFRESH_WAIT = 1000; // milliseconds in which several events lead to one reading
const BANDS = [{from: 0, to: 50, kind: "red"}, {from: 50, to: 75, kind: "yellow"}, {from: 75, to: 100, kind: "green"}];

export function trendsPage({signal}) {
  const body = h("div");
  const said = h("div");
  showPage(heading("Trends"), h("p", {class: "note"}, "The newest completed score of every session, unless said otherwise."), said, body);

  async function load() {
    try {
      const [statistics, roadmap] = await Promise.all([get("/scoring/statistics", {}, signal), get("/scoring/roadmap", {}, signal)]);
      showAgain(body, tiles(statistics, ({currentTarget}) => scoreAll("obsolete", currentTarget, said)), figures(statistics, roadmap));
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The statistics cannot be shown", load));
    }
  }

  let waiting = null;
  listen("sessions", ({type}) => {
    if (type === "scoring.progress") return;
    waiting ??= setTimeout(() => {
      waiting = null;
      if (!signal.aborted) load();
    }, REFRESH_WAIT);
  }, signal);
  load();
}

function tiles({sessions, scores}, rescore) {
  const active = sessions.pending + sessions.in_progress;
  const shown = [
    ["Sessions", count(sessions.total)], ["Scored", count(sessions.completed)], ["Not scored", count(sessions.not_scored)],
    ["Being scored", count(active)], ["Failed", count(sessions.failed)],
    ["Mean score", number(scores.mean)], ["Median score", number(scores.median)],
    ["Lowest to highest", scores.n ? `${number(scores.lowest)} – ${number(scores.highest)}` : "–"],
    ["Under outdated criteria", count(scores.obsolete), scores.obsolete > 0 && h("button", {type: "button", class: "bare", onclick: rescore}, "Score them again")],
  ];
  return h("ul", {class: "tiles", "aria-label": "In figures"}, shown.map(([what, value, more]) =>
    h("li", {}, h("span", {class: "value"}, value), h("span", {class: "what"}, what), more && h("div", {}, more))));
}

function figures(statistics, roadmap) {
  return h("div", {class: "figures"},
    distribution(statistics), trend(statistics.trend),
    ranking("Missing tools", "Sessions in which the judge missed the tool, by the current criteria.", statistics.missing_tools.map((each) => [each.tool_name, each.sessions]), "Tool"),
    ranking("Patterns of failure", "Sessions in whose analysis the judge named the pattern, by the current criteria.", statistics.failure_tags.map((each) => [words(each.tag), each.sessions]), "Pattern"),
    agreement(statistics.agreement), roadmapFigures(roadmap));
}

function distribution({distribution: bins, bands, scores}) {
  const title = "Distribution of scores";
  if (!scores.n) return emptyFigure(title, "No session has a score yet.");
  const bars = bins.map((bin) => ({label: `${bin.low}–${bin.high}`, value: bin.count, kind: band(bin.low)[1]}));
  return figure({
    title, alt: `Sessions by score, in steps of ten. Red ${bands.red}, yellow ${bands.yellow}, green ${bands.green}.`,
    note: `Mean ${number(scores.mean)} ${interval(scores.ci_low, scores.ci_high)}, n = ${count(scores.n)}, by the current criteria${scores.obsolete ? `; ${count(scores.obsolete)} by earlier ones are left out` : ""}. Red (0–49): ${count(bands.red)} · yellow (50–74): ${count(bands.yellow)} · green (75–100): ${count(bands.green)}. Scores of 70 to 79 are of both colours.`,
    draw: (width) => columns(splitAt75(bars, bins), width),
    numbers: {headings: ["Score", "Sessions"], rows: bars.map((bar) => [bar.label, count(bar.value)])},
  });
}

/** The bin of 70 to 79 holds both yellow and green scores: it takes a colour of its own. */
function splitAt75(bars, bins) {
  return bars.map((bar, i) => (band(bins[i].low)[1] === band(bins[i].high)[1] ? bar : {...bar, kind: "mixed"}));
}

function trend(points) {
  const title = "Mean score by day";
  if (!points.length) return emptyFigure(title, "No session has a score yet.");
  const hashes = [...new Set(points.map((point) => point.criteria_hash))];
  const isCurrent = (hash) => points.some((point) => point.criteria_hash === hash && point.current);
  const series = hashes.map((hash) => ({
    name: `criteria ${shortHash(hash)}${isCurrent(hash) ? " (current)" : ""}`,
    points: points.filter((point) => point.criteria_hash === hash).sort((a, b) => (a.day < b.day ? -1 : 1)).map((point) => ({
      x: Date.parse(point.day) * 1000, y: point.mean, label: `${point.day}: ${number(point.mean)}, ${count(point.n)} scores`, low: point.ci_low, high: point.ci_high,
    })),
  }));
  const box = figure({
    title, note: "All completed scores, one line for each version of the judge's criteria.", alt: "Mean score by day and criteria.",
    draw: (width) => lines(series, width, {range: [0, 100], bands: BANDS, xLabel: day}),
    numbers: {headings: ["Day", "Criteria", "Scores", "Mean", "95 % interval"],
      rows: points.map((point) => [name(point.day), `${shortHash(point.criteria_hash)}${point.current ? " (current)" : ""}`, count(point.n), number(point.mean), interval(point.ci_low, point.ci_high)])},
  });
  box.querySelector(".plot").after(legend(series));
  return box;
}

function ranking(title, note, entries, what) {
  if (!entries.length) return emptyFigure(title, "None so far.");
  const shown = entries.slice(0, RANKED);
  const rest = entries.length > RANKED ? ` The first ${RANKED} of ${count(entries.length)}.` : "";
  return figure({
    title, note: note + rest, alt: `${title}, most frequent first.`,
    draw: (width) => rows(shown.map(([label, value]) => ({label, value})), width),
    numbers: {headings: [what, "Sessions"], rows: entries.map(([label, value]) => [name(label), count(value)])},
  });
}

function agreement({n, units, mean_difference: difference, mean_difference_ci: around, mean_absolute_difference: distance, mean_absolute_difference_ci: wide, correlation, correlation_ci: together}) {
  const title = "Judge and people";
  if (!n) return emptyFigure(title, "Nobody has rated a scored session yet. Ratings are given on a session's page.");
  const lenient = difference > 0 ? "more generous than people" : difference < 0 ? "stricter than people" : "as strict as people";
  return h("section", {class: "figure"}, h("h2", {}, title),
    h("p", {class: "note"}, `${count(n)} rated ${n === 1 ? "score" : "scores"} of ${counted(units, "session")} under the current criteria, with 95 % intervals.`),
    h("ul", {class: "tiles"},
      h("li", {}, h("span", {class: "value"}, signed(difference)), h("span", {class: "what"}, `points on average, ${interval(around.low, around.high)}: the judge is ${lenient}`)),
      h("li", {}, h("span", {class: "value"}, number(distance)), h("span", {class: "what"}, `points apart on average, ${interval(wide.low, wide.high)}`)),
      h("li", {}, h("span", {class: "value"}, number(correlation)), h("span", {class: "what"}, correlation === null ? "correlation: too few ratings to say" : `correlation (Pearson), ${interval(together.low, together.high)}`))));
}

function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value).replace("-", "−");
}
