/** What a difference is made of: parts that sum up to it, and the rows behind each. */

import {here, keepAddress} from "/js/address.js";
import {shortJudge} from "/js/answers.js";
import {get, queryText} from "/js/api.js";
import {freshId, h, show} from "/js/dom.js";
import {count, interval, name, number, words} from "/js/format.js";
import {heading, problem, showPage} from "/js/page.js";
import {itemPath} from "/js/runs_address.js";
import {table} from "/js/table.js";

const SIDE = "run, RUN:MODEL or model";
const FIELDS = [["a", "A", SIDE], ["b", "B", SIDE], ["run", "Run of the models", "the newest"], ["metric", "Metric", "the one that ranks"]];

export function explainPage({query, signal}) {
  const wanted = Object.fromEntries(FIELDS.map(([key]) => [key, query.get(key)]));
  const body = h("div");
  const known = h("datalist", {id: "sides"});
  const form = h("form", {class: "filters", "aria-label": "What is explained", onsubmit: (event) => {
    event.preventDefault();
    for (const [key, value] of new FormData(form)) wanted[key] = String(value).trim() || null;
    keepAddress(here().pathname + queryText(wanted));
    load();
  }}, FIELDS.map(([key, label, placeholder]) => {
    const id = freshId("field");
    return h("div", {class: "search"}, h("label", {for: id}, label), h("input", {id, name: key, value: wanted[key], maxlength: 700,
      placeholder, list: key === "metric" ? null : "sides"}));
  }), known, h("div", {class: "actions"}, h("button", {type: "submit", class: "primary"}, "Explain")));
  showPage(heading("Explain a difference"), form, body);

  async function load() {
    if (!wanted.a || !wanted.b) return show(body, h("p", {class: "empty"}, "Name two sides: their difference is split into samples, replies, judge, code, repeats and labels."));
    try {
      const answer = await get("/explain", wanted, signal);
      const groups = Map.groupBy(answer.parts, (part) => JSON.stringify([part.a, part.b, part.judge]));
      show(body, [...groups.values()].map(parts), Object.entries(answer.rows).map(([part, rows]) => behind(part, rows, answer)));
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The difference cannot be explained", load));
    }
  }

  load();
  get("/runs", {page_size: 50}, signal).then(({runs}) => show(known, runs.flatMap((run) => [run.run_id, ...run.models.map((model) => `${run.run_id}:${model}`)]).map((value) => h("option", {value}))), () => {});
}

function parts(rows) {
  const [{a, b, judge, metric, value_a: valueA, value_b: valueB, difference}] = rows;
  return h("section", {class: "panel"}, h("h2", {}, `${words(metric)}: ${signed(difference)}`),
    h("p", {class: "note"}, `A ${name(a)} ${number(valueA)}, B ${name(b)} ${number(valueB)}`, judge && `, judged by ${shortJudge(judge)}`, ". The parts sum up to the difference."),
    table({caption: `Parts of the difference in ${words(metric)}, ${name(a)} and ${name(b)}${judge ? `, ${shortJudge(judge)}` : ""}`, headings: ["Part", "Contribution", "Samples", "What it is"], texts: true, kinds: [null, "figure", "figure", "long"],
      rows: rows.map((row) => [words(row.part), [h("strong", {}, signed(row.contribution)), row.ci_low !== null && row.samples > 0 && h("span", {class: "sub"}, interval(row.ci_low, row.ci_high))], count(row.samples), name(row.meaning, 300)])}));
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${number(value)}`;
}

function behind(part, rows, {runs, most_rows: most}) {
  return h("details", {class: "panel"}, h("summary", {}, `Rows behind ${words(part)} (${rows.length === most ? `the first ${count(most)}` : count(rows.length)})`),
    table({caption: `Rows behind ${words(part)}`, headings: ["Sample", "Side", "Dataset", "Of", "Judge", "Repeat"], texts: true, kinds: [null, "line", "line", "line", "line", "figure"],
      rows: rows.map((row) => [row.sample_hash ? h("a", {href: itemPath(runs[row.side], row.sample_hash)}, name(row.sample_id, 80)) : name(row.sample_id, 80),
        row.side.toUpperCase(), name(row.dataset), name(row[row.side]), row.judge ? shortJudge(row.judge) : "–", count(row.replicate)])}));
}
