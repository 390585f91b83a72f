/** The badge of a score or of a scoring's state. */

import {h} from "/js/dom.js";

const BANDS = [[75, "green", "good"], [50, "yellow", "middling"], [0, "red", "poor"]];
const STATES = {
  pending: ["Pending", "pending"],
  in_progress: ["Scoring", "scoring"],
  failed: ["Failed", "failed"],
};

/** `scored`: an object with `status` and `total_score`, or null where a session was never scored. */
export function badge(scored) {
  if (!scored?.status || scored.status === "not_scored") return plain("Not Scored", "not-scored");
  if (scored.status === "completed") return scoreBadge(scored.total_score);
  const [text, kind] = STATES[scored.status] ?? ["Unknown", "not-scored"];
  return plain(text, kind);
}

/** The badge of points from 0 to 100. */
export function scoreBadge(points) {
  const [, kind, meaning] = band(points);
  return h("span", {class: `badge ${kind}`, title: `${points} of 100: ${meaning}`}, points, h("span", {class: "hidden"}, ` of 100, ${meaning}`));
}

/** Lowest points, colour and meaning of the band that the points are in. */
export function band(points) {
  return BANDS.find(([lowest]) => points >= lowest) ?? BANDS.at(-1);
}

function plain(text, kind) {
  return h("span", {class: `badge ${kind}`}, text);
}
