/** The score of a session: what was investigated, what the judge made of it, and what people think. */

import {send, sessionPath} from "/js/api.js";
import {badge} from "/js/badge.js";
import {freshId, h, show} from "/js/dom.js";
import {duration, name, number, shortHash, time, words} from "/js/format.js";
import {announce, message, problem} from "/js/page.js";
import {isActive} from "/js/scoring.js";
import {facts} from "/js/table.js";
import {jsonOrText, prose} from "/js/text.js";

const CATEGORIES = [["logical_flow", "Logical flow"], ["consistency", "Consistency"], ["tool_relevance", "Tool relevance"], ["synthesis_quality", "Synthesis quality"]];
const CATEGORY_POINTS = 25;
const TOOL_KINDS = [["unused", "Should have been used"], ["absent", "Do not exist"], ["improvable", "Could be improved"], [null, null]];

export function scoreView({session, score, scores, service, choose, refresh, askForTools}) {
  return h("div", {class: "columns"},
    h("div", {}, notices(score), result(score, score?.score_id === session.score?.score_id && askForTools), investigated(session)),
    h("div", {}, provenance(score), rating(session, score, service, refresh), historyOf(scores, score, choose)));
}

function notices(score) {
  if (!score) return message("info", "Not scored yet", "Nobody has judged this investigation. “Score session” asks the judge to.");
  if (isActive(score)) return message("info", "The judge is at work", "The score appears here when it is there; you need not wait on this page.");
  if (score.status === "failed") {
    const said = score.judge_words && h("details", {}, h("summary", {}, "What the judge said"), prose(score.judge_words));
    return [message("error", "The scoring failed", name(score.error_message, 2000), "“Try again” asks the judge for what is missing."), said];
  }
  return score.current_prompt_used === false && message("warning", "Outdated criteria",
    "This score was made under criteria that have changed since. Compare it with newer ones with care, or score the session again.");
}

function result(score, askForTools) {
  if (score?.status !== "completed") return null;
  const large = badge(score);
  large.classList.add("large");
  return [
    h("section", {class: "panel"}, h("h2", {}, "Score"), h("div", {class: "head"}, large, h("span", {class: "note"}, "of 100")), deviation(score), breakdown(score), tags(score.failure_tags)),
    h("section", {class: "panel"}, h("h2", {}, "Analysis"), score.score_analysis ? prose(score.score_analysis) : h("p", {class: "empty"}, "The judge gave no analysis.")),
    missingTools(score, askForTools),
  ];
}

/** How far the score moves when the judge is asked again. */
function deviation({retest_std: moves, retest_sessions: repeated}) {
  if (moves === null) return h("p", {class: "note"}, "How far it would move if scored again is not known: no session was scored twice by this judge under these criteria.");
  return h("p", {class: "note"}, `Scored again, one session's score moves by ± ${moves.toFixed(1)} points (standard deviation; ${repeated} ${repeated === 1 ? "session" : "sessions"} with several scores).`);
}

function breakdown(score) {
  const known = CATEGORIES.filter(([key]) => Number.isFinite(score[key]));
  if (!known.length) return h("p", {class: "note"}, "The judge gave no breakdown that could be read.");
  return [
    h("ul", {class: "breakdown"}, CATEGORIES.map(([key, label]) => {
      const points = score[key];
      const isKnown = Number.isFinite(points);
      return h("li", {}, h("span", {}, label),
        h("meter", {min: 0, max: CATEGORY_POINTS, low: 12.5, high: 18.5, optimum: CATEGORY_POINTS, value: isKnown ? points : 0, "aria-label": label}),
        h("span", {class: "points"}, `${isKnown ? points : "–"} / ${CATEGORY_POINTS}`));
    })),
    score.breakdown_consistent === false && h("p", {class: "note"}, "The four categories do not add up to the total that the judge gave."),
  ];
}

function tags(found) {
  if (!found) return null;
  if (!found.length) return h("p", {class: "note"}, "No pattern of failure was named.");
  return [h("h3", {}, "Patterns of failure"), h("ul", {class: "tags"}, found.map((tag) => h("li", {}, words(tag))))];
}

function missingTools(score, askForTools) {
  const tools = score.missing_tools && [...score.missing_tools, ...score.tools_to_improve];
  const list = tools?.length > 0 && TOOL_KINDS.map(([kind, title]) => {
    const ofKind = tools.filter((tool) => tool.kind === kind);
    return ofKind.length > 0 && [title && h("h3", {}, title), h("ul", {}, ofKind.map(namedTool))];
  });
  let rest = [h("p", {class: "empty"}, name(score.error_message ?? "Not known: the judge did not answer that question.", 2000)),
    score.error_message && askForTools && h("button", {type: "button", onclick: askForTools}, "Ask for missing tools")];
  if (list) rest = score.missing_tools_analysis && h("details", {}, h("summary", {}, "In the judge's own words"), prose(score.missing_tools_analysis));
  else if (score.missing_tools_analysis) rest = prose(score.missing_tools_analysis);
  else if (tools) rest = h("p", {class: "empty"}, "None.");
  return h("section", {class: "panel"}, h("h2", {}, "Missing tools"), list, rest);
}

function namedTool(tool) {
  return h("li", {}, h("strong", {}, name(tool.tool_name)), tool.rationale && h("div", {class: "prose"}, prose(tool.rationale)));
}

function investigated(session) {
  return [
    h("section", {class: "panel"}, h("h2", {}, "Final analysis"), session.final_analysis ? prose(session.final_analysis) : h("p", {class: "empty"}, "The session ended without one.")),
    h("section", {class: "panel"}, h("h2", {}, "Alert"), session.alert ? jsonOrText(session.alert, "Alert") : h("p", {class: "empty"}, "Not known.")),
  ];
}

function provenance(score) {
  if (!score) return null;
  return h("section", {class: "panel"}, h("h2", {}, "This scoring"), facts([
    ["Asked by", score.score_triggered_by ? name(score.score_triggered_by) : "a run of the suite"],
    ["Judge", score.fallback_for ? `${name(score.judge)}, in place of ${name(score.fallback_for)}` : name(score.judge)],
    ["Asked for", time(score.scored_at_us)],
    ["Began", time(score.started_at_us)],
    ["Ended", time(score.completed_at_us)],
    ["Took", duration(score.started_at_us, score.completed_at_us)],
    ["Criteria", `${shortHash(score.prompt_hash)}${score.current_prompt_used === false ? " (outdated)" : ""}`],
  ]));
}

function rating(session, score, service, refresh) {
  if (score?.status !== "completed" || score.score_id !== session.score?.score_id) return null;
  const given = (session.human_ratings ?? []).filter((each) => each.score_id === score.score_id || each.score_id === null);
  const mine = given.find((each) => each.rated_by === service.user);
  const points = h("input", {type: "number", id: freshId("points"), min: 0, max: 100, step: 1, required: true, value: mine?.score});
  const note = h("textarea", {id: freshId("note"), rows: 3, maxlength: 4000});
  note.value = mine?.note ?? "";
  const said = h("div");
  const form = h("form", {onsubmit: async (event) => {
    event.preventDefault();
    try {
      await send("PUT", sessionPath(session.session_id, "/human-rating"), {score: points.valueAsNumber, note: note.value.trim() || null});
      announce("Your rating is kept");
      await refresh();
    } catch (error) {
      show(said, problem(error, "Your rating was not kept", null));
    }
  }},
  h("label", {for: points.id}, "Your score, 0 to 100"), points,
  h("label", {for: note.id}, "Why (optional)"), note, said,
  h("p", {}), h("button", {type: "submit"}, mine ? "Change my rating" : "Keep my rating"));
  return h("section", {class: "panel"}, h("h2", {}, "Rated by people"),
    h("p", {class: "note"}, given.length ? "How good people find this investigation:" : "Nobody yet. How good do you find this investigation?"),
    given.length > 0 && facts(given.map((each) => [name(each.rated_by), [h("strong", {}, each.quality_rating ? words(each.quality_rating) : number(each.score)), each.note && h("div", {}, name(each.note, 2000)), h("div", {class: "note"}, time(each.rated_at_us))]])),
    form);
}

function historyOf(scores, shown, choose) {
  if (scores.length < 2) return null;
  return h("section", {class: "panel"}, h("h2", {}, "History"), h("ol", {class: "history"}, scores.map((each) => {
    const isShown = each.score_id === shown?.score_id;
    const asked = each.score_triggered_by ? `by ${name(each.score_triggered_by)}` : "by a run of the suite";
    return h("li", {}, h("button", {type: "button", class: "bare", "aria-current": isShown ? "true" : null, onclick: () => choose(each.score_id)},
      badge(each), h("span", {class: isShown ? null : "as-link"}, each.completed_at_us ?? each.scored_at_us ? time(each.completed_at_us ?? each.scored_at_us) : "Undated"),
      h("span", {class: "sub"}, `${asked}${each.current_prompt_used === false ? ", outdated criteria" : ""}`)));
  })));
}
