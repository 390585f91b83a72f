/** The technical side of a session and of its scoring: identities, times, tools, tokens, cost. */

import {h, outerLink} from "/js/dom.js";
import {count, dollars, duration, name, time, visible, words} from "/js/format.js";
import {facts, table} from "/js/table.js";
import {prose} from "/js/text.js";

export function technicalView({session, score, service}) {
  const workers = (session.stages ?? []).flatMap((stage) => [...agents(stage, [])]);
  return h("div", {}, aboutSession(session), stages(workers), tools(workers), runbook(session), aboutScoring(score, service));
}

/** The link to a flow run in Prefect's own pages, by default with its id as text; the id where these are unknown. */
export function flowRunLink(service, id, text = null) {
  if (!id) return null;
  return service.prefect_url ? outerLink(`${service.prefect_url}/runs/flow-run/${encodeURIComponent(id)}`, text ?? name(id)) : name(id);
}

function* agents(stage, above) {
  const path = [...above, stage];
  yield {stage, title: path.map((each) => name(each.name)).join(" › ")};
  for (const child of stage.children ?? []) yield* agents(child, path);
}

function aboutSession(session) {
  return h("section", {class: "panel"}, h("h2", {}, "Session"), facts([
    ["Session", name(session.session_id, 300)],
    ["Ended as", words(session.session_status)],
    ["Error", session.error && visible(session.error)],
    ["Alert type", name(session.alert_type)],
    ["Agent", name(session.agent)],
    ["Began", time(session.started_at_us)],
    ["Ended", time(session.completed_at_us)],
    ["Took", duration(session.started_at_us, session.completed_at_us)],
    ["Tool calls", count(session.tool_calls)],
  ]));
}

function stages(workers) {
  if (!workers.length) return null;
  const rows = workers.map(({stage, title}) => {
    const calls = (stage.interactions ?? []).filter((each) => each.kind === "tool");
    const failed = calls.filter((each) => each.error).length;
    return [title, name(stage.agent), words(stage.status), duration(stage.started_at_us, stage.completed_at_us),
      count((stage.interactions ?? []).length), count(calls.length), count(failed)];
  });
  return h("section", {class: "panel"}, h("h2", {}, "Stages"), table({caption: "Stages of the session", rows, texts: true,
    kinds: [null, "long"], headings: ["Stage", "Agent", "Status", "Took", "Interactions", "Tool calls", "Tool errors"]}));
}

function tools(workers) {
  const known = new Map();
  for (const {stage} of workers) {
    for (const tool of stage.tools ?? []) known.set(tool.server ? `${tool.server}.${tool.name}` : tool.name, tool.description);
  }
  const used = new Map();
  for (const {stage} of workers) {
    for (const each of stage.interactions ?? []) {
      if (each.kind !== "tool") continue;
      const title = each.server ? `${each.server}.${each.tool}` : each.tool;
      used.set(title, (used.get(title) ?? 0) + 1);
    }
  }
  const titles = [...new Set([...used.keys(), ...known.keys()])];
  if (!titles.length) return null;
  const rows = titles.map((title) => [name(title), count(used.get(title) ?? 0), known.has(title) ? name(known.get(title), 400) : "not in the list of tools"]);
  return h("section", {class: "panel"}, h("h2", {}, "Tools"), table({caption: "Tools, used and available", headings: ["Tool", "Calls", "What it does"], rows, texts: true, kinds: [null, null, "long"]}));
}

function runbook(session) {
  return session.runbook && h("section", {class: "panel"}, h("h2", {}, "Runbook"), h("details", {}, h("summary", {}, "Show the runbook"), prose(session.runbook)));
}

function aboutScoring(score, service) {
  if (!score) return null;
  const cut = score.cut_chars > 0
    ? `${count(score.cut_chars)} characters of ${count(score.cut_interactions)} interactions, to fit the judge's context`
    : "nothing";
  return h("section", {class: "panel"}, h("h2", {}, "Scoring"), facts([
    ["Score", name(score.score_id)],
    ["Status", words(score.status)],
    ["Error", score.error_message && visible(score.error_message)],
    ["Judge", name(score.judge)],
    ["Criteria", name(score.prompt_hash)],
    ["Current criteria", name(service.criteria_hash)],
    ["Repeat", Number.isFinite(score.replicate) ? count(score.replicate) : null],
    ["Flow run", flowRunLink(service, score.flow_run_id)],
    ["Cut", Number.isFinite(score.cut_chars) ? cut : null],
    ["Input tokens", count(score.input_tokens)],
    ["Output tokens", count(score.output_tokens)],
    ["Cost", dollars(score.cost_usd)],
  ]));
}
