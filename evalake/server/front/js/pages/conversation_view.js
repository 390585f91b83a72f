/** The conversation of a session: stages, agents, what they said, and what their tools answered. */

import {h} from "/js/dom.js";
import {count, name, time, visible, words} from "/js/format.js";
import {jsonOrText, prose, verbatim} from "/js/text.js";

const OPEN = 400; // characters of a tool's result that is shown without being asked for

export function conversationView({session}) {
  if (!session.stages?.length) return h("p", {class: "empty"}, "The session holds no conversation.");
  return h("div", {}, session.stages.map((stage, i) => stageOf(stage, `${i + 1}`, 2)),
    h("section", {class: "panel"}, h("h2", {}, "Final analysis"), session.final_analysis ? prose(session.final_analysis) : h("p", {class: "empty"}, "The session ended without one.")));
}

function stageOf(stage, number, level) {
  const children = stage.children ?? [];
  const sideBySide = children.length ? ` · ${count(children.length)} agents side by side` : "";
  return h("section", {class: "panel"},
    h(`h${Math.min(level, 6)}`, {}, `${number} ${name(stage.name)}`),
    h("p", {class: "note"}, `${name(stage.agent)} · ${words(stage.status)}${sideBySide}`),
    stage.error && h("p", {class: "state bad"}, visible(stage.error)),
    stage.interactions?.length > 0 && h("ol", {class: "turns"}, stage.interactions.map((each) => turn(each, level))),
    children.map((child, i) => stageOf(child, `${number}.${i + 1}`, level + 1)));
}

function turn(each, level) {
  if (each.kind === "tool") return toolTurn(each);
  if (each.kind === "said") return saidTurn(each, level);
  return h("li", {class: "turn"}, who("Event", each.at_us), h("p", {}, visible(each.text ?? "")));
}

function saidTurn(said, level) {
  return h("li", {class: said.error ? "turn error" : "turn"}, who("Agent", said.at_us, words(said.purpose)),
    said.thinking && onDemand("Thinking", said.thinking, () => prose(said.thinking, level)),
    said.text && prose(said.text, level),
    said.error && error(said.error));
}

function toolTurn(call) {
  const title = call.server ? `${call.server}.${call.tool}` : call.tool;
  const hasArguments = call.arguments && call.arguments !== "{}";
  return h("li", {class: call.error ? "turn error" : "turn tool"}, who("Tool", call.at_us, name(title)),
    hasArguments && part("Arguments"), hasArguments && jsonOrText(call.arguments, `Arguments of ${name(title)}`),
    call.error && error(call.error),
    call.result && (call.result.length > OPEN
      ? onDemand("Result", call.result, () => jsonOrText(call.result, `Result of ${name(title)}`))
      : [part("Result"), verbatim(call.result, `Result of ${name(title)}`)]),
    !call.result && !call.error && h("p", {class: "empty"}, "No result."));
}

function who(role, at, detail = null) {
  return h("p", {class: "who"}, h("strong", {}, detail && role === "Tool" ? detail : role),
    detail && role !== "Tool" && ` · ${detail}`, role === "Tool" && " · tool call", at && ` · ${time(at)}`);
}

function part(title) {
  return h("p", {class: "part"}, title);
}

function error(text) {
  return h("div", {}, h("p", {class: "state bad"}, "Error"), verbatim(text, "Error"));
}

/** Something long that is built when the reader opens it. */
function onDemand(title, text, build) {
  const details = h("details", {ontoggle: () => details.open && details.childElementCount === 1 && details.append(build())},
    h("summary", {}, `${title}, ${count(text.length)} characters`));
  return details;
}
