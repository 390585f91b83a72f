/** The items of a run: one line a sample with the answers of all models; filtered and sorted by the server. */

import {keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {shortJudge, shortModel, variant, verdict} from "/js/answers.js";
import {get} from "/js/api.js";
import {freshId, h, show} from "/js/dom.js";
import {beginning, count, counted, name, words} from "/js/format.js";
import {announce, heading, problem, showPage} from "/js/page.js";
import {FILTERS, itemPath, itemsPath, runPath, wantedOf} from "/js/runs_address.js";

const MOST_COLUMNS = 4; // models that have a column of their own
const SEARCH_WAIT = 300; // milliseconds after the last key
const SORTS = [["position", "Dataset order"], ["wrong", "Wrong answers"], ["sample", "Sample"], ["category", "Category"],
  ["score", "Score"], ["confidence", "Confidence"], ["latency", "Latency"], ["cost", "Cost"], ["tokens", "Output tokens"]];
const CORRECT = [["", "Any"], ["false", "Wrong"], ["true", "Right"], ["unknown", "Unknown"]];
const LABELS = {model: "Model", judge: "Judge", prompt_type: "Prompt", verdict: "Verdict", error: "Error", flag: "Marked as", category: "Category", label: "Truth", dataset: "Dataset"};

export function itemsPage({parts: [runId], query, signal}) {
  const wanted = wantedOf(query);
  let after = query.get("after");
  const results = h("section", {"aria-label": "Samples"});
  const filters = h("div", {}, h("p", {class: "filters note"}, "Reading by what the samples can be filtered …"));
  const trail = h("p", {class: "trail"}, h("a", {href: pathOf("runs")}, "Runs"), " › ", h("a", {href: runPath(runId)}, name(runId)), " › Samples");
  showPage(trail, heading("Samples"), filters, results);
  let asking = null;

  function change(changes) {
    Object.assign(wanted, changes);
    for (const [key, value] of Object.entries(wanted)) if (value === null || value === "") delete wanted[key];
    after = null;
    keepAddress(itemsPath(runId, wanted));
    load(true);
  }

  async function load(tell = false) {
    asking?.abort();
    asking = new AbortController();
    const mine = AbortSignal.any([signal, asking.signal]);
    results.setAttribute("aria-busy", "true");
    try {
      const answer = await get(`${runPath(runId)}/items`, {...wanted, after}, mine);
      show(results, listing(runId, answer, wanted), pager(answer));
      if (tell) announce(counted(answer.total, "sample"));
    } catch (error) {
      if (error.name !== "AbortError") show(results, problem(error, "The samples cannot be shown", load));
    } finally {
      if (!mine.aborted) results.removeAttribute("aria-busy");
    }
  }

  function pager({items, total, next, first}) {
    const last = first + items.length - 1;
    return h("nav", {class: "pager", "aria-label": "Pages of the list"},
      after && h("a", {class: "button", href: itemsPath(runId, wanted)}, "First page"),
      h("span", {class: "note"}, items.length ? `${count(first)}–${count(last)} of ${count(total)}` : ""),
      next && h("a", {class: "button", href: itemsPath(runId, {...wanted, after: next})}, "Next page"));
  }

  async function offer() {
    try {
      const run = await get(runPath(runId), {}, signal);
      document.title = `Samples of ${name(run.run.run_id)} · evalake`;
      show(filters, filterForm(run, wanted, change));
    } catch (error) {
      if (error.name !== "AbortError" && error.status !== 401 && error.status !== 404) show(filters, problem(error, "The filters cannot be shown", offer));
    }
  }

  addEventListener("keydown", (event) => {
    if (event.key !== "/" || isTyping(event)) return;
    event.preventDefault();
    filters.querySelector("[name=q]")?.focus();
  }, {signal});
  load().then(offer); // one after the other: of a large run the first page is there long before the rest
}

/** Whether a key is meant for a field, or for the browser. */
export function isTyping(event) {
  return event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || event.target.isContentEditable;
}

function filterForm({choices}, wanted, change) {
  let waiting = null;
  const read = () => Object.fromEntries([...new FormData(form)].filter(([key]) => FILTERS.includes(key)).map(([key, value]) => [key, String(value).trim() || null]));
  const apply = () => {
    clearTimeout(waiting);
    const [sort, order] = form.elements.sorting.value.split("-");
    change({...read(), sort: sort === "position" && order === "asc" ? null : sort, order: order === "asc" ? null : order});
  };
  const differ = [["", "Any"], ["models", "Models differ", choices.model.length > 1], ["judges", "Judges differ", choices.judge.length > 1]];
  if (String(wanted.differ ?? "").startsWith("run:")) differ.push([wanted.differ, `Changed since ${name(wanted.differ.slice(4), 40)}`]);
  const sorting = `${wanted.sort ?? "position"}-${wanted.order ?? "asc"}`;
  const form = h("form", {class: "filters", role: "search", "aria-label": "Filter the samples", onsubmit: (event) => {
    event.preventDefault();
    apply();
  }, onchange: ({target}) => target.name !== "q" && apply(), oninput: ({target}) => {
    if (target.name !== "q") return;
    clearTimeout(waiting);
    waiting = setTimeout(apply, SEARCH_WAIT);
  }},
    field("Text in input or reply", h("input", {type: "search", name: "q", maxlength: 500, value: wanted.q, placeholder: "Press / to search"}), "search"),
    field("Answer is", select("correct", CORRECT, wanted.correct)),
    Object.keys(LABELS).filter((key) => choices[key].length > (key === "flag" || key === "error" ? 0 : 1) || wanted[key]).map((key) =>
      field(LABELS[key], select(key, optionsOf(key, choices[key], wanted[key]), wanted[key]))),
    choices.model.length > 1 || choices.judge.length > 1 || wanted.differ
      ? field("Agreement", select("differ", differ.filter(([, , isThere]) => isThere !== false), wanted.differ)) : null,
    field("Sort by", select("sorting", SORTS.flatMap(([key, text]) => [[`${key}-asc`, text], [`${key}-desc`, `${text} ↓`]]), sorting)),
    h("div", {class: "actions"}, h("button", {type: "button", onclick: () => {
      for (const each of form.elements) if (FILTERS.includes(each.name)) each.value = "";
      form.elements.sorting.value = "position-asc";
      apply();
    }}, "Clear the filters")));
  return form;
}

function optionsOf(key, choices, wanted) {
  const any = [["", "Any"]];
  if (key === "error") any.push(["any", "Any error"]);
  const told = choices.map(({value, count: n}) => [value, `${key === "flag" ? words(value) : name(value, 80)} (${count(n)})`]);
  const missing = [wanted ?? []].flat().filter((value) => ![...any, ...told].some(([each]) => each === value));
  return [...any, ...told, ...missing.map((value) => [value, name(value, 80)])];
}

function field(label, control, kind = null) {
  control.id = freshId("field");
  return h("div", {class: kind}, h("label", {for: control.id}, label), control);
}

function select(key, options, chosen) {
  return h("select", {name: key}, options.map(([value, text]) => h("option", {value, selected: value === ([chosen ?? ""].flat()[0])}, text)));
}

function listing(runId, {items}, wanted) {
  if (!items.length) return h("p", {class: "empty"}, "No sample matches these filters.");
  const models = [...new Set(items.flatMap((item) => item.answers.map((answer) => answer.model)))];
  const columns = models.length && models.length <= MOST_COLUMNS ? models : null;
  const [hasInput, hasAnswers] = [items.some((item) => item.input), models.length > 0]; // samples that were only imported have none
  const columnHead = (text) => h("th", {scope: "col", role: "columnheader"}, text);
  return h("table", {class: "listing items", role: "table"},
    h("caption", {class: "hidden"}, "Samples and their answers"),
    h("thead", {role: "rowgroup"}, h("tr", {role: "row"}, columnHead("Sample"), hasInput && columnHead("Input"),
      columns ? columns.map((model) => columnHead(shortModel(model))) : hasAnswers && columnHead("Answers"))),
    h("tbody", {role: "rowgroup"}, items.map((item) => line(runId, item, {columns, hasInput, hasAnswers}, wanted))));
}

function line(runId, item, {columns, hasInput, hasAnswers}, wanted) {
  const truth = [item.label, item.category].filter(Boolean).map((each) => name(each, 60)).join(" · ");
  const of = (model) => item.answers.filter((answer) => answer.model === model);
  return h("tr", {role: "row"},
    h("th", {scope: "row", role: "rowheader"}, h("a", {class: "id", href: itemPath(runId, item.item_id, wanted)}, name(item.sample_id, 80)), h("span", {class: "sub"}, truth)),
    hasInput && h("td", {role: "cell", class: "excerpt"}, h("code", {}, beginning(item.input, 180))),
    columns ? columns.map((model) => h("td", {role: "cell", "data-label": shortModel(model)}, chips(of(model), false)))
      : hasAnswers && h("td", {role: "cell", class: "answers"}, h("div", {class: "by-model"}, [...Map.groupBy(item.answers, (answer) => answer.model)].map(([model, answers]) =>
        h("span", {class: "of-model"}, h("span", {class: "sub"}, shortModel(model)), chips(answers, true))))));
}

/** The verdicts of one model: each with judge, prompt and repeat where there are several; `tight`: counted where alike. */
function chips(answers, tight) {
  if (!answers.length) return h("span", {class: "note"}, "–");
  if (!tight) return h("span", {class: "chips"}, answers.map((answer) => chip(answer, answers.length > 1 ? whoseOf(answer) : "")));
  const alike = [...Map.groupBy(answers, ({verdict: decided, score, correct, error}) => JSON.stringify([error ? "error" : decided, score, correct])).values()];
  return h("span", {class: "chips"}, alike.map((group) => chip(group[0], group.length > 1 ? `× ${count(group.length)}` : "", group.map(whoseOf).filter(Boolean).join("; "))));
}

function chip(answer, after, title = null) {
  return h("span", {class: "chip", title}, verdict(answer), after && h("span", {class: "sub"}, after));
}

function whoseOf(answer) {
  return [answer.judge && shortJudge(answer.judge), variant(answer)].filter(Boolean).join(", ");
}
