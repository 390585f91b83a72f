/** Two sides beside each other: how they differ in every metric, and the samples, with the words that differ. */

import {here, keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {shortJudge, verdict} from "/js/answers.js";
import {get, queryText} from "/js/api.js";
import {chooseTag} from "/js/choose.js";
import {freshId, h, show} from "/js/dom.js";
import {beginning, count, counted, interval, name, number, probability, visible, words} from "/js/format.js";
import {announce, heading, message, problem, showPage} from "/js/page.js";
import {samplesOf, shared, sidesPanel} from "/js/heat.js";
import {itemPath, runPath} from "/js/runs_address.js";
import {table} from "/js/table.js";
import {wordDiff} from "/js/word_diff.js";

const ASKED = ["tag", "run", "a", "b", "metric", "corrected", "kind", "after"];
const MOST_SIDES = 6;
const LETTERS = "ABCDEF";
const KINDS = [["", "Only where they differ"], ["to_a", "Only A is right"], ["to_b", "Only B is right"], ["all", "All"]];
const SIGNIFICANT = 0.05;

export function comparePage({query, signal}) {
  const wanted = {...Object.fromEntries(ASKED.map((key) => [key, query.get(key)])), more: query.getAll("more").slice(0, MOST_SIDES - 2)};
  const [form, figures, pairs] = [h("div"), h("div"), h("section", {class: "panel", "aria-label": "Samples"})];
  showPage(heading("Compare"), form, figures, pairs);
  const sides = () => ({run: wanted.run, tag: wanted.tag, a: wanted.a, b: wanted.b});

  function change(changes) {
    const isOther = ["tag", "run", "a", "b", "more"].some((key) => key in changes);
    Object.assign(wanted, {after: null}, changes);
    keepAddress(here().pathname + queryText(wanted));
    if (isOther) offer();
    if (isOther || "metric" in changes || "corrected" in changes) compare();
    if (isOther || "kind" in changes || "after" in changes) samples(true);
  }

  async function offer() {
    try {
      const {runs, tags} = await get("/runs", {tag: wanted.tag, page_size: 200}, signal);
      const measured = runs.filter((run) => run.snapshot_id);
      const several = measured.find((run) => (wanted.run ? run.run_id === wanted.run : run.models.length > 1));
      if (!wanted.a && !wanted.b && several?.models.length > 1) return change({run: several.run_id, a: several.models[0], b: several.models[1]});
      show(form, sideForm(measured, tags, wanted, change));
    } catch (error) {
      if (error.name !== "AbortError" && error.status !== 401) show(form, problem(error, "The runs cannot be shown", offer));
    }
  }

  async function compare() {
    if (!wanted.a || !wanted.b) {
      show(figures, h("p", {class: "empty"}, "Name two sides: models of the run, runs, or RUN:MODEL."));
      return;
    }
    try {
      const others = [wanted.b, ...wanted.more];
      const answers = await Promise.all(others.map((b) => get("/compare", {...sides(), b, metric: wanted.metric, corrected: wanted.corrected}, signal)));
      const slices = h("div");
      const all = answers.map((answer) => answer.markdown).join("\n");
      show(figures, shared(all, pathOf("explain") + queryText({...sides(), metric: wanted.metric})), answers.map((answer, i) => statistics(answer, wanted, change, LETTERS[i + 1])), slices);
      bySlice(slices);
    } catch (error) {
      if (error.name !== "AbortError") show(figures, problem(error, "These cannot be compared", compare));
    }
  }

  async function bySlice(place) {
    try {
      const side = [wanted.a, wanted.b, ...wanted.more];
      show(place, sidesPanel(await get("/compare/sides", {run: wanted.run, tag: wanted.tag, side, metric: wanted.metric, corrected: wanted.corrected}, signal)));
    } catch (error) {
      if (error.name !== "AbortError") show(place, h("p", {class: "note"}, `No figures by slice: ${error.message}`));
    }
  }

  async function samples(tell = false) {
    if (!wanted.a || !wanted.b) return show(pairs);
    try {
      if (wanted.more.length) {
        const kind = wanted.kind === "all" ? "all" : null;
        const answer = await get("/compare/columns", {run: wanted.run, tag: wanted.tag, side: [wanted.a, wanted.b, ...wanted.more], kind, after: wanted.after}, signal);
        show(pairs, h("h2", {}, "Samples"), shares(answer, wanted, change), columnList(answer, wanted, signal), pager({...answer, pairs: answer.rows}, wanted, change));
        if (tell) announce(counted(answer.total, "sample"));
        return;
      }
      const answer = await get("/compare/items", {...sides(), kind: wanted.kind, after: wanted.after}, signal);
      show(pairs, h("h2", {}, "Samples"), flips(answer, wanted, change), pairList(answer, wanted, signal), pager(answer, wanted, change));
      if (tell) announce(counted(answer.total, "sample"));
    } catch (error) {
      if (error.name !== "AbortError") show(pairs, wanted.more.length > 0 && problem(error, "These cannot be shown in columns", samples));
    }
  }

  offer();
  compare();
  samples();
}

function sideForm(runs, tags, wanted, change) {
  const chosen = runs.find((run) => run.run_id === wanted.run);
  const models = chosen?.models ?? [];
  const text = (key, label, kind) => field(label, h("input", {name: key, list: "sides", value: wanted[key], maxlength: 700, placeholder: "model, run or RUN:MODEL", onchange: ({target}) => change({[key]: target.value.trim() || null})}), kind);
  return h("form", {class: "filters", "aria-label": "What is compared", onsubmit: (event) => event.preventDefault()},
    chooseTag(tags, wanted.tag, (tag) => change({tag, run: null})),
    field("Run", h("select", {name: "run", onchange: ({target}) => {
      const [a, b] = runs.find((run) => run.run_id === target.value)?.models ?? [];
      change({run: target.value || null, a: a ?? null, b: b ?? null, more: [], metric: null});
    }}, [["", "Newest"], ...runs.map((run) => [run.run_id, `${name(run.run_id)} (${words(run.suite)})`])].map(([value, label]) => h("option", {value, selected: value === (wanted.run ?? "")}, label))), "search"),
    text("a", "A", "search starts"), text("b", "B", "search"),
    [...wanted.more, ...(wanted.a && wanted.b && wanted.more.length < MOST_SIDES - 2 ? [null] : [])].map((side, i) =>
      field(side ? LETTERS[i + 2] : "One more", h("input", {name: `more-${i}`, list: "sides", value: side, maxlength: 700, placeholder: "model, run or RUN:MODEL",
        onchange: ({target}) => change({more: Object.assign([...wanted.more], {[i]: target.value.trim()}).filter(Boolean)})}), "search")),
    h("datalist", {id: "sides"}, [...models, ...runs.map((run) => run.run_id)].map((each) => h("option", {value: each}))),
    h("div", {class: "actions search"}, h("button", {type: "button", onclick: () => change({a: wanted.b, b: wanted.a})}, "Swap A and B"),
      h("label", {class: "inline"}, h("input", {type: "checkbox", name: "corrected", checked: Boolean(wanted.corrected), onchange: ({target}) => change({corrected: target.checked ? "true" : null})}), " Corrected by people’s labels or a calibration")));
}

function field(label, control, kind = null) {
  control.id = freshId("field");
  return h("div", {class: kind}, h("label", {for: control.id}, label), control);
}

/** The rows of `evalake compare`: headline metrics at once, the others when asked for. */
function statistics({rows, headline, warnings, sides}, wanted, change, other) {
  const isHeadline = (row) => headline.includes(row.metric);
  const [first, rest] = wanted.metric ? [rows, []] : [rows.filter(isHeadline), rows.filter((row) => !isHeadline(row))];
  return h("section", {class: "panel"}, h("h2", {}, `Difference, A − ${other}`), warnings.length > 0 && message("warning", null, ...warnings),
    h("p", {class: "note"}, "Paired by sample unless said otherwise, with 95 % intervals; p is corrected by Holm for all rows."),
    wanted.metric && h("p", {}, h("button", {type: "button", onclick: () => change({metric: null})}, "All metrics")),
    first.length ? statisticsTable(first, `Differences in headline metrics, A − ${other}`, change, other, sides, !wanted.more.length) : h("p", {class: "empty"}, "No headline metric compares."),
    rest.length > 0 && h("details", {}, h("summary", {}, `All other metrics (${count(rest.length)})`), statisticsTable(rest, `Differences in other metrics, A − ${other}`, change, other, sides, !wanted.more.length)));
}

function statisticsTable(rows, caption, change, other, sides, isPair) {
  const linked = (value, side) => (sides[side].model ? h("a", {href: samplesOf(sides[side])}, number(value)) : number(value));
  const several = new Set(rows.map((row) => `${row.a}|${row.b}`)).size > 1;
  const judged = rows.some((row) => row.judge !== null);
  const columns = ["Metric", several && `A and ${other}`, judged && "Judge", "A", other, "Difference", "p", "Only one right"].filter(Boolean);
  return table({caption, headings: columns, texts: true, kinds: columns.map((each) => (["A", other, "Difference", "p"].includes(each) ? "figure" : null)), rows: rows.map((row) => [
    h("button", {type: "button", class: "bare as-link", onclick: () => change({metric: row.metric})}, words(row.metric), row.slice === "all" ? "" : `: ${name(row.slice_value)}`),
    several && `${name(row.a)} and ${name(row.b)}`, judged && (row.judge ? shortJudge(row.judge) : "–"),
    linked(row.value_a, 0), linked(row.value_b, 1), difference(row), chance(row),
    row.flips_to_a === null ? "–" : [flip("A", row.flips_to_a, "to_a", isPair && change), ", ", flip(other, row.flips_to_b, "to_b", isPair && change)],
  ].filter((each) => each !== false))});
}

/** How many units only one side has right: of A and B, a button that lists them. */
function flip(side, units, kind, change) {
  const text = `${side} ${count(units)}`;
  return change ? h("button", {type: "button", class: "bare as-link", onclick: () => change({kind})}, text) : text;
}

function difference({difference: value, ci_low: low, ci_high: high, units}) {
  const sign = value > 0 ? "+" : "";
  return [h("strong", {}, sign, number(value)), h("span", {class: "sub"}, interval(low, high)), h("span", {class: "sub"}, counted(units, "unit"))];
}

function chance({p, p_holm: corrected}) {
  if (p === null) return "–";
  return [corrected !== null && corrected < SIGNIFICANT ? h("strong", {}, probability(corrected)) : probability(corrected ?? p), h("span", {class: "sub"}, `alone ${probability(p)}`)];
}

function flips({answered, to_a: toA, to_b: toB, total}, wanted, change) {
  return h("div", {}, h("p", {class: "note"}, `${counted(answered, "pair")} of answers; only A is right in ${count(toA)}, only B in ${count(toB)}. ${count(total)} of them match.`),
    h("div", {class: "actions"}, KINDS.map(([value, label]) =>
      h("button", {type: "button", class: value === (wanted.kind ?? "") ? "primary" : null, "aria-pressed": String(value === (wanted.kind ?? "")), onclick: () => change({kind: value || null})}, label))));
}

function pairList(answer, wanted, signal) {
  if (!answer.pairs.length) return h("p", {class: "empty"}, "None.");
  const hasInput = answer.pairs.some((pair) => pair.input); // of recorded results it may be unknown
  const columnHead = (text) => h("th", {scope: "col", role: "columnheader"}, text);
  return h("table", {class: "listing items", role: "table"}, h("caption", {class: "hidden"}, "Samples with the answers of A and B"),
    h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, columnHead("Sample"), hasInput && columnHead("Input"), columnHead("A"), columnHead("B"), columnHead("Words"))),
    h("tbody", {role: "rowgroup"}, answer.pairs.flatMap((pair) => pairRows(pair, answer, {hasInput, signal}))));
}

function pairRows(pair, answer, {hasInput, signal}) {
  const place = h("td", {role: "cell", colspan: hasInput ? 5 : 4});
  const row = h("tr", {role: "row", hidden: true}, place);
  const open = h("button", {type: "button", "aria-expanded": "false", onclick: async () => {
    row.hidden = !row.hidden;
    open.setAttribute("aria-expanded", String(!row.hidden));
    if (row.hidden || place.childElementCount) return;
    try {
      show(place, await replies(pair, answer, signal));
    } catch (error) {
      if (error.name !== "AbortError") show(place, problem(error, "The replies cannot be shown", null));
    }
  }}, "Compare");
  const truth = [pair.label, pair.category].filter(Boolean).map((each) => name(each, 60)).join(" · ");
  const cell = (each, run, item, label) => h("td", {role: "cell", "data-label": label}, h("a", {class: "plain", href: itemPath(run, item)}, verdict(each)), each.judge && h("span", {class: "sub"}, shortJudge(each.judge)));
  return [h("tr", {role: "row"},
    h("th", {scope: "row", role: "rowheader"}, h("a", {class: "id", href: itemPath(answer.run_a, pair.item_id)}, name(pair.sample_id, 80)), h("span", {class: "sub"}, truth)),
    hasInput && h("td", {role: "cell", class: "excerpt"}, h("code", {}, beginning(pair.input, 140))),
    cell(pair.a, answer.run_a, pair.item_id, "A"), cell(pair.b, answer.run_b, pair.item_b, "B"), h("td", {role: "cell"}, open)), row];
}

/** How often each side is right, and a choice of which samples are listed. */
function shares({answered, right, total}, wanted, change) {
  const kinds = KINDS.filter(([value]) => value === "" || value === "all");
  const kind = wanted.kind === "all" ? "all" : "";
  return h("div", {}, h("p", {class: "note"}, `${counted(answered, "sample")} answered by all; right: ${right.map((n, i) => `${LETTERS[i]} ${count(n)}`).join(", ")}. ${count(total)} of them match.`),
    h("div", {class: "actions"}, kinds.map(([value, label]) =>
      h("button", {type: "button", class: value === kind ? "primary" : null, "aria-pressed": String(value === kind), onclick: () => change({kind: value || null})}, label))));
}

/** One row a sample, one column a side. */
function columnList({rows, runs}, wanted, signal) {
  if (!rows.length) return h("p", {class: "empty"}, "None.");
  const hasInput = rows.some((row) => row.input);
  const names = [wanted.a, wanted.b, ...wanted.more];
  const columnHead = (...content) => h("th", {scope: "col", role: "columnheader"}, content);
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Samples in columns, table"},
    h("table", {class: "listing items", role: "table"}, h("caption", {class: "hidden"}, "Samples with the answer of each side"),
      h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, columnHead("Sample"), hasInput && columnHead("Input"),
        names.map((side, i) => columnHead(LETTERS[i], h("span", {class: "sub"}, name(side, 60)))), columnHead("Words"))),
      h("tbody", {role: "rowgroup"}, rows.flatMap((row) => columnRows(row, runs, {hasInput, signal})))));
}

function columnRows(row, runs, {hasInput, signal}) {
  const place = h("td", {role: "cell", colspan: row.answers.length + (hasInput ? 3 : 2)});
  const more = h("tr", {role: "row", hidden: true}, place);
  const open = h("button", {type: "button", "aria-expanded": "false", onclick: async () => {
    more.hidden = !more.hidden;
    open.setAttribute("aria-expanded", String(!more.hidden));
    if (more.hidden || place.childElementCount) return;
    try {
      // Each beside A, with the words that only one of the two has
      const others = row.answers.slice(1).map((answer, i) => replies({item_id: row.item_id, a: row.answers[0], b: answer}, {run_a: runs[0], run_b: runs[i + 1]}, signal, LETTERS[i + 1]));
      show(place, await Promise.all(others));
    } catch (error) {
      if (error.name !== "AbortError") show(place, problem(error, "The replies cannot be shown", null));
    }
  }}, "Compare");
  const truth = [row.label, row.category].filter(Boolean).map((each) => name(each, 60)).join(" · ");
  return [h("tr", {role: "row"},
    h("th", {scope: "row", role: "rowheader"}, h("a", {class: "id", href: itemPath(runs[0], row.item_id)}, name(row.sample_id, 80)), h("span", {class: "sub"}, truth)),
    hasInput && h("td", {role: "cell", class: "excerpt"}, h("code", {}, beginning(row.input, 140))),
    row.answers.map((answer, i) => h("td", {role: "cell", "data-label": LETTERS[i]}, h("a", {class: "plain", href: itemPath(runs[i], row.item_id)}, verdict(answer)), answer.judge && h("span", {class: "sub"}, shortJudge(answer.judge)))),
    h("td", {role: "cell"}, open)), more];
}

/** The replies of both sides, and which words only one of them has. */
async function replies(pair, {run_a: runA, run_b: runB}, signal, other = "B") {
  const read = (run, item) => get(`${runPath(run)}/items/${encodeURIComponent(item)}`, {}, signal);
  const itemOfB = pair.item_b ?? pair.item_id;
  const [itemA, itemB] = await Promise.all([read(runA, pair.item_id), runB === runA && itemOfB === pair.item_id ? null : read(runB, itemOfB)]);
  const [a, b] = [replyOf(itemA, pair.a), replyOf(itemB ?? itemA, pair.b)];
  const parts = a !== null && b !== null ? wordDiff(visible(a, 20000), visible(b, 20000)) : null;
  const side = (label, model, text, own) => h("div", {class: "side"}, h("p", {class: "who"}, h("strong", {}, `${label}: ${name(model)}`)),
    text === null ? h("p", {class: "empty"}, "No text came back.") : h("pre", {class: "verbatim", tabindex: 0, role: "group", "aria-label": `Reply of ${label}`},
      own ? own.map(([part, isOwn]) => (isOwn ? h("mark", {}, part) : part)) : visible(text, 20000)));
  return h("div", {class: "sides"}, side("A", pair.a.model, a, parts?.[0]), side(other, pair.b.model, b, parts?.[1]));
}

/** What was answered: its subject's reply, or its judge's where there is no other. */
function replyOf(item, wanted) {
  const answer = item.answers.find((each) => ["model", "judge", "prompt_type", "replicate"].every((key) => each[key] === wanted[key]));
  const calls = (answer?.calls ?? []).map((id) => item.calls.find((call) => call.call_id === id));
  const answered = calls.find((call) => call.by === "subject" && call.answer) ?? calls.find((call) => call.answer);
  return answered?.answer ?? null;
}

function pager({pairs, total, next}, wanted, change) {
  const first = Number(wanted.after ?? 0);
  return h("nav", {class: "pager", "aria-label": "Pages of the samples"},
    first > 0 && h("button", {type: "button", onclick: () => change({after: null})}, "First page"),
    pairs.length > 0 && h("span", {class: "note"}, `${count(first + 1)}–${count(first + pairs.length)} of ${count(total)}`),
    next !== null && h("button", {type: "button", onclick: () => change({after: next})}, "Next page"));
}
