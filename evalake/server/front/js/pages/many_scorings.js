/** Many scorings at once: all sessions that were never scored, or all whose score has obsolete criteria. */

import {send} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, counted, dollars, name} from "/js/format.js";
import {announce, confirmed, message, problem} from "/js/page.js";

const KINDS = {
  not_scored: {button: "Score all not scored", title: "Score all that were never scored?", more: "", none: "Every session was scored, or is being scored."},
  obsolete: {button: "Rescore obsolete ones", title: "Rescore all under obsolete criteria?", more: " The scores of now stay in the history.", none: "No score was made under obsolete criteria."},
};

/** Buttons, and below them what became of a click on one. */
export function manyScorings() {
  const said = h("div");
  const buttons = Object.entries(KINDS).map(([kind, {button}]) =>
    h("button", {type: "button", onclick: (event) => scoreAll(kind, event.currentTarget, said)}, button));
  return h("div", {}, h("div", {class: "actions"}, buttons), said);
}

/** Say what it would cost, ask, and begin; what became of it goes into `said`. */
export async function scoreAll(kind, button, said) {
  if (button.hasAttribute("aria-disabled")) return;
  button.setAttribute("aria-disabled", "true");
  show(said);
  try {
    const found = await send("POST", "/scoring/estimate", {[kind]: true});
    if (!found.sessions) {
      tell(said, KINDS[kind].none);
    } else if (await confirmed({title: KINDS[kind].title, text: priceOf(found) + KINDS[kind].more, yes: `Score ${counted(found.sessions, "session")}`})) {
      const {accepted, refused} = await send("POST", "/scoring/batch", {[kind]: true});
      const rest = refused.length ? ` Refused: ${count(refused.length)}, ${name(refused[0].detail, 300)}` : "";
      tell(said, `${counted(accepted.length, "scoring")} asked for.${rest}`, rest ? "warning" : "info");
    }
  } catch (error) {
    show(said, problem(error, "Nothing was asked for", () => scoreAll(kind, button, said)));
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

/** What an estimate says, in one sentence. */
function priceOf({sessions, calls, usd_low: low, usd_high: high, judge}) {
  let price = "their price is not known";
  if (high === 0) price = "free of charge";
  else if (high !== null) price = `about ${dollars(low)} to ${dollars(high)} in all`;
  return `${counted(sessions, "session")}: about ${counted(calls, "call")} of ${name(judge)}, ${price}.`;
}

function tell(said, text, kind = "info") {
  show(said, message(kind, null, text));
  announce(text);
}
