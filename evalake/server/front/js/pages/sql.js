/** A console for questions in SQL: what `evalake sql` answers, with the tables at its side. */

import {here, keepAddress} from "/js/address.js";
import {fileOf, get, queryText, send} from "/js/api.js";
import {freshId, h, show} from "/js/dom.js";
import {beginning, count, counted, name, seconds, visible, words} from "/js/format.js";
import {announce, heading, problem, showPage} from "/js/page.js";
import {pager} from "/js/pager.js";
import {offerFile} from "/js/save.js";

const PAGE = 50; // rows
const LONG = 80; // characters of a cell that is folded
const FIRST = "from runs";
const MOST_OF_EXAMPLE = 120; // characters

export function sqlPage({query, signal}) {
  const [results, side] = [h("section", {"aria-label": "Result"}), h("aside", {class: "tables", "aria-label": "Tables"})];
  const id = freshId("query");
  const text = h("textarea", {id, name: "query", rows: 5, spellcheck: "false", autocomplete: "off", autocapitalize: "off", maxlength: 100000, onkeydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run();
  }});
  text.value = query.get("query") ?? FIRST; // a link fills it in; only its reader runs it
  const examples = h("div");
  const button = h("button", {type: "submit", class: "primary"}, "Run");
  const form = h("form", {"aria-label": "Query", onsubmit: (event) => {
    event.preventDefault();
    run();
  }}, h("label", {for: id}, "Query, in DuckDB's SQL"), text, examples,
  h("div", {class: "actions"}, button, h("span", {class: "note"}, "or ", h("kbd", {}, "Ctrl"), " ", h("kbd", {}, "Enter"), ". It only reads, and is stopped after a minute.")));
  showPage(heading("SQL"), h("div", {class: "console"}, h("div", {}, form, results), side));
  let asked = 0;

  async function run() {
    asked += 1;
    const mine = asked;
    const question = text.value.trim();
    if (!question) return text.focus();
    keepAddress(here().pathname + queryText({query: question}));
    results.setAttribute("aria-busy", "true");
    show(results, h("p", {class: "empty"}, "Asking …"));
    const began = performance.now();
    try {
      const answer = await send("POST", "/sql", {query: question});
      if (mine !== asked || signal.aborted) return;
      const took = seconds((performance.now() - began) / 1000);
      show(results, resultOf(answer, question, took));
      announce(`${counted(answer.total, "row")} in ${took}`);
    } catch (error) {
      if (mine === asked && !signal.aborted) show(results, problem(error, "The query gave no result", error.status === 400 ? null : run));
    } finally {
      if (mine === asked) results.removeAttribute("aria-busy");
    }
  }

  async function offer() {
    try {
      const {tables, examples: declared} = await get("/sql", {}, signal);
      show(side, h("h2", {}, "Tables and views"), tables.map((each) => tableEntry(each)));
      show(examples, declared.length > 0 && exampleChoice(declared, (chosen) => {
        text.value = chosen;
        text.focus();
      }));
    } catch (error) {
      if (error.name !== "AbortError") show(side, problem(error, "The tables cannot be shown", offer));
    }
  }

  offer();
}

function exampleChoice(declared, choose) {
  const id = freshId("example");
  const groups = Map.groupBy(declared, (each) => each.title);
  const select = h("select", {id, onchange: () => {
    if (select.value) choose(declared[Number(select.value)].query);
    select.value = "";
  }}, h("option", {value: ""}, "Choose one …"), [...groups].map(([title, group]) => h("optgroup", {label: name(title)},
    group.map((each) => h("option", {value: declared.indexOf(each)}, beginning(each.query, MOST_OF_EXAMPLE))))));
  return h("div", {class: "example"}, h("label", {for: id}, "Examples"), select);
}

function tableEntry({name: table, kind, description, columns}) {
  return h("details", {}, h("summary", {}, h("code", {}, table), kind === "view" && h("span", {class: "note"}, " view")),
    h("p", {class: "note"}, visible(description)),
    h("ul", {}, columns.map((each) => h("li", {}, h("code", {}, each.column), " ", h("span", {class: "note"}, words(each.type.toLowerCase()), each.key && ", key"),
      each.description && h("span", {class: "sub"}, visible(each.description))))));
}

function resultOf(answer, question, took) {
  const {columns, rows, total, cut_cells: cut} = answer;
  const place = h("div");
  const turn = (page) => show(place, rowTable(columns, rows.slice((page - 1) * PAGE, page * PAGE), (page - 1) * PAGE),
    rows.length > PAGE && pager({page, pages: Math.ceil(rows.length / PAGE), total: rows.length}, (to) => {
      turn(to);
      announce(`Page ${count(to)}`);
    }));
  turn(1);
  const notes = [rows.length < total && `The first ${count(rows.length)} are here, a file has all.`, cut > 0 && `${counted(cut, "long text")} cut here, not in a file.`].filter(Boolean);
  return [h("p", {class: "note"}, `${counted(total, "row")} in ${took}. `, notes.join(" ")), downloads(question), total ? place : h("p", {class: "empty"}, "No row.")];
}

function downloads(question) {
  const said = h("div");
  const safe = h("input", {type: "checkbox", id: freshId("safe")});
  const save = async (format) => {
    show(said, h("p", {class: "note"}, "Writing the file …"));
    try {
      offerFile(await fileOf("/sql/file", {query: question, format, spreadsheet_safe: format === "csv" && safe.checked}), `result.${format}`);
      show(said);
      announce("The file is written");
    } catch (error) {
      show(said, problem(error, "There is no file", () => save(format)));
    }
  };
  return h("div", {class: "downloads"}, h("div", {class: "actions"},
    h("button", {type: "button", onclick: () => save("csv")}, "Download CSV"), h("button", {type: "button", onclick: () => save("parquet")}, "Download Parquet"),
    h("span", {class: "note"}, safe, " ", h("label", {for: safe.id, class: "inline"}, "CSV for a spreadsheet: no cell becomes a formula"))), said);
}

function rowTable(columns, rows, before) {
  const cell = (value, {is_number: isNumber}) => h("td", {class: isNumber ? "figure" : null}, content(value));
  return h("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Rows, table"}, h("table", {class: "rows"},
    h("caption", {class: "hidden"}, "Rows of the result"),
    h("thead", {}, h("tr", {}, h("th", {scope: "col", class: "figure"}, h("span", {class: "hidden"}, "Row")), columns.map((each) =>
      h("th", {scope: "col", class: each.is_number ? "figure" : null}, name(each.name), h("span", {class: "sub"}, words(each.type.toLowerCase())))))),
    h("tbody", {}, rows.map((values, i) => h("tr", {}, h("th", {scope: "row", class: "figure"}, count(before + i + 1)), values.map((value, at) => cell(value, columns[at])))))));
}

/** A value as text: numbers as they are, for they may be ids; long texts folded. */
function content(value) {
  if (value === null) return h("span", {class: "note"}, "null");
  const whole = String(value);
  if (whole.length <= LONG) return visible(whole);
  const details = h("details", {ontoggle: () => {
    if (details.open && details.childElementCount === 1) details.append(h("pre", {class: "verbatim", tabindex: 0}, visible(whole, whole.length)));
  }}, h("summary", {}, `${beginning(whole, LONG)} `, h("span", {class: "note"}, `${count(whole.length)} characters`)));
  return details;
}
