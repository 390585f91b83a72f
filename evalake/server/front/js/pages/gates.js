/** What gates decided over time: each rule with its verdicts, oldest first, and the numbers that decided. */

import {shortJudge} from "/js/answers.js";
import {get} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, counted, interval, name, number, percent, time} from "/js/format.js";
import {heading, message, problem, showPage} from "/js/page.js";
import {runPath} from "/js/runs_address.js";
import {table} from "/js/table.js";

const NEWEST = 12; // verdicts that are shown beside a rule
const KINDS = {PASS: "right", FAIL: "wrong", UNDECIDED: "error"};

export function gatesPage({signal}) {
  const body = h("div");
  showPage(heading("Gates"), body);

  async function load() {
    try {
      const histories = await get("/gates", {}, signal);
      show(body, histories.length ? [...Map.groupBy(histories, (each) => each.suite).entries()].map(ofSuite)
        : message("info", "No gate has decided yet", "Each decision of a gate is kept: evalake gate RUN --rule \"METRIC >= NUMBER\""));
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The gates cannot be shown", load));
    }
  }

  load();
}

function ofSuite([suite, histories]) {
  return h("section", {class: "panel"}, h("h2", {}, name(suite)), [...Map.groupBy(histories, (each) => each.rule).entries()].map(ofRule));
}

function ofRule([rule, histories]) {
  return [h("h3", {}, name(rule, 300)), table({caption: `Decisions of ${name(rule, 300)}`, headings: ["Model", "Now", "Value", "Decisions, newest last"], texts: true, kinds: [null, "line", "figure", "long"],
    rows: histories.map(({model, judge, decisions}) => {
      const last = decisions.at(-1);
      return [[name(model), judge && h("span", {class: "sub"}, shortJudge(judge))], verdict(last), figures(last), h("span", {class: "chips"}, decisions.slice(-NEWEST).map(verdict))];
    })}),
  h("details", {}, h("summary", {}, counted(histories.reduce((sum, each) => sum + each.decisions.length, 0), "decision")), histories.map((each) => history(rule, each)))];
}

function history(rule, {model, judge, decisions}) {
  const whose = `${name(model)}${judge ? `, ${shortJudge(judge)}` : ""}`;
  return [h("h4", {}, whose), table({caption: `Each decision of ${name(rule, 300)}, ${whose}`, headings: ["When", "Verdict", "Value", "Units", "Run", "Baseline", "Why"], texts: true, kinds: [null, "line", "figure", "figure", "line", "line", "long"],
    rows: decisions.toReversed().map((each) => [time(each.decided_at_us), verdict(each), figures(each), `${count(each.units)}${few(each)}`, h("a", {href: runPath(each.run_id)}, name(each.run_id, 40)), each.baseline ? name(each.baseline, 60) : "–", each.reason ? name(each.reason, 300) : "–"])})];
}

function verdict({verdict: said}) {
  return h("span", {class: `verdict ${KINDS[said]}`}, said);
}

function few({reliable, value}) {
  return reliable === false && value !== null ? " (few)" : "";
}

/** The value with its interval, the limits that decided where they differ, and the share of what is missing. */
function figures({value, difference, ci_low: low, ci_high: high, limit_low: least, limit_high: most, missing}) {
  const ends = low === null ? "" : interval(low, high), limits = least === null ? "" : interval(least, most);
  const told = [difference === null ? ends : `change ${difference > 0 ? "+" : ""}${number(difference)} ${ends}`,
    limits && limits !== ends && `decided by ${limits}`, missing > 0 && `${percent(missing)} missing`];
  return [number(value), told.filter(Boolean).map((each) => h("span", {class: "sub"}, each))];
}
