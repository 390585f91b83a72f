/** The form by which the samples of a run are filtered and sorted. */

import {EXPORTED} from "/js/address.js";
import {freshId, h} from "/js/dom.js";
import {count, name, words} from "/js/format.js";
import {FILTERS} from "/js/runs_address.js";

const SEARCH_WAIT = 300; // milliseconds after the last key
const SORTS = [["position", "Dataset order"], ["wrong", "Wrong answers"], ["sample", "Sample"], ["category", "Category"],
  ["score", "Score"], ["confidence", "Confidence"], ["latency", "Latency"], ["cost", "Cost"], ["tokens", "Output tokens"]];
const CORRECT = [["", "Any"], ["false", "Wrong"], ["true", "Right"], ["unknown", "Unknown"]];
const LABELS = {model: "Model", judge: "Judge", prompt_type: "Prompt", verdict: "Verdict", error: "Error", flag: "Marked as", category: "Category", label: "Truth", dataset: "Dataset"};
const EXAMPLE = 'verdict = "ALLOW" and model ~ "gpt" and cost > 0.01';

/** The form. `change` is told what is wanted; `others` are runs that can be shown beside this one. */
export function filterForm({choices}, wanted, change, {others, beside, lookBeside}) {
  let waiting = null;
  const read = () => Object.fromEntries([...new FormData(form)].filter(([key]) => FILTERS.includes(key)).map(([key, value]) => [key, String(value).trim() || null]));
  const apply = () => {
    clearTimeout(waiting);
    const [sort, order] = form.elements.sorting.value.split("-");
    const sorting = sort === "answer" ? {} : {sort: sort === "position" && order === "asc" ? null : sort, of: null, order: order === "asc" ? null : order};
    change({...read(), ...sorting});
  };
  const differ = [["", "Any"], ["models", "Models differ", choices.model.length > 1], ["judges", "Judges differ", choices.judge.length > 1]];
  if (String(wanted.differ ?? "").startsWith("run:")) differ.push([wanted.differ, `Changed since ${name(wanted.differ.slice(4), 40)}`]);
  const sorting = wanted.sort === "answer" ? "answer-asc" : `${wanted.sort ?? "position"}-${wanted.order ?? "asc"}`;
  const byAnswer = wanted.sort === "answer" ? [["answer-asc", `Answers of ${name(wanted.of, 40)}`]] : [];
  const form = h("form", {class: "filters", role: "search", "aria-label": "Filter the samples", onsubmit: (event) => {
    event.preventDefault();
    apply();
  }, onchange: ({target}) => target.name !== "q" && target.name !== "beside" && apply(), oninput: ({target}) => {
    if (target.name !== "q") return;
    clearTimeout(waiting);
    waiting = setTimeout(apply, SEARCH_WAIT);
  }},
    EXPORTED === null && expression(wanted.filter),
    field("Text in input or reply", h("input", {type: "search", name: "q", maxlength: 500, value: wanted.q, placeholder: "Press / to search"}), "search"),
    field("Answer is", select("correct", CORRECT, wanted.correct)),
    Object.keys(LABELS).filter((key) => choices[key].length > (key === "flag" || key === "error" ? 0 : 1) || wanted[key]).map((key) =>
      field(LABELS[key], select(key, optionsOf(key, choices[key], wanted[key]), wanted[key]))),
    choices.model.length > 1 || choices.judge.length > 1 || wanted.differ
      ? field("Agreement", select("differ", differ.filter(([, , isThere]) => isThere !== false), wanted.differ)) : null,
    others.length > 0 && field("Beside another run", h("select", {name: "beside", onchange: ({target}) => lookBeside(target.value ? [target.value] : [])},
      [["", "None"], ...[...new Set([...beside, ...others])].map((each) => [each, name(each, 60)])].map(([value, text]) => h("option", {value, selected: value === (beside[0] ?? "")}, text)))),
    wanted.like && field("Like another sample", select("like", [["", "No"], [wanted.like, "By words"]], wanted.like)),
    field("Sort by", select("sorting", [...byAnswer, ...SORTS.flatMap(([key, text]) => [[`${key}-asc`, text], [`${key}-desc`, `${text} ↓`]])], sorting)),
    h("div", {class: "actions"}, h("button", {type: "button", onclick: () => {
      for (const each of form.elements) if (FILTERS.includes(each.name)) each.value = "";
      form.elements.sorting.value = "position-asc";
      apply();
    }}, "Clear the filters")));
  return form;
}

function expression(text) {
  const hint = freshId("hint");
  const input = h("input", {name: "filter", maxlength: 1000, value: text, spellcheck: "false", autocomplete: "off", placeholder: EXAMPLE, "aria-describedby": hint});
  const box = field("Filter", input, "whole-row");
  box.append(h("details", {class: "note"}, h("summary", {}, "How a filter is written"), h("p", {id: hint}, "One answer meets all of it. Columns: model, judge, prompt, repeat, verdict, correct, error, score, confidence, cost, latency (ms), tokens, input_tokens, sample, dataset, category, label, and marks; ",
    h("code", {}, "= != < <= > >= ~ !~ in is null and or not ( )"), "; ~ is “contains”.")));
  return box;
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
