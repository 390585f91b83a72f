/** What the last check of each table found of its rules, by both engines. */

import {pathOf} from "/js/addresses.js";
import {get} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, counted, name, time, visible, words} from "/js/format.js";
import {heading, problem, showPage} from "/js/page.js";
import {table} from "/js/table.js";

const ENGINES = [["great_expectations", "Great Expectations"], ["polars", "Audit"]];

export function checksPage({signal}) {
  const body = h("div");
  const trail = h("p", {class: "trail"}, h("a", {href: pathOf("runs")}, "Runs"), " › Data docs");
  showPage(trail, heading("Data docs"),
    h("p", {class: "note"}, "Every rule of every table, as “evalake check” held the table to it last: by Great Expectations, and by the masks with which runs audit their rows."), body);

  async function load() {
    try {
      const tables = await get("/checks", {}, signal);
      show(body, tables.length ? tables.map(tableSection) : h("p", {class: "empty"}, "No table was checked yet. “evalake check” does."));
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The checks cannot be shown", load));
    }
  }

  load();
}

function tableSection({table: of, description, version, rows, checked_at_us: at, broken, warnings, rules}) {
  return h("section", {class: "panel"},
    h("h2", {}, `${of}: `, h("span", {class: broken || warnings ? "state bad" : "state good"}, broken ? `${counted(broken, "rule")} broken` : warnings ? counted(warnings, "warning") : "ok")),
    h("p", {class: "note"}, `${description} ${counted(rows, "row")}, version ${count(version)}, checked ${time(at)}.`),
    h("details", {open: broken + warnings > 0}, h("summary", {}, `Its ${counted(rules.length, "rule")}`), table({
      caption: `Rules of ${of}`, texts: true,
      headings: ["Rule", "Severity", "Looks after", ...ENGINES.map(([, label]) => label)],
      rows: rules.map((rule) => [name(rule.demands, 300), words(rule.severity), words(rule.dimension), ...ENGINES.map(([engine]) => outcome(rule, engine))]),
    })));
}

function outcome({results}, engine) {
  const result = results.find((each) => each.engine === engine);
  if (!result) return "–";
  if (result.passed) return "kept";
  return [h("span", {class: "state bad"}, `${result.outcome}: ${counted(result.rows_failed, "row")}`), result.message && h("span", {class: "sub"}, visible(result.message, 300))];
}
