/** Answers in short: a verdict with its mark, and whose it is. The mark says it, too, where colours are not seen. */

import {h} from "/js/dom.js";
import {name, number, words} from "/js/format.js";

/** The mark of an answer: its verdict or score, and whether that is right. */
export function verdict(answer) {
  const text = answer.score === null ? name(answer.verdict ?? (answer.error ? "error" : null), 40) : number(answer.score);
  const [kind, mark, meaning] = state(answer);
  const why = [meaning, answer.error && name(answer.error, 200), ...answer.flags.map(words)].filter(Boolean).join("; ");
  return h("span", {class: `verdict ${kind}`, title: why}, mark && h("span", {"aria-hidden": "true"}, `${mark} `), text,
    meaning && h("span", {class: "hidden"}, ` (${meaning})`));
}

function state({correct, error, verdict: decided}) {
  if (error) return ["error", "!", decided && correct === false ? "no answer, counts as wrong" : "no answer"];
  if (correct === true) return ["right", "✓", "right"];
  if (correct === false) return ["wrong", "✗", "wrong"];
  return ["open", "", ""];
}

/** The part of a model's name that tells it from others of its provider. */
export function shortModel(model) {
  return name(String(model).split("/").at(-1), 60);
}

export const BY_DAWID_SKENE = "panel:dawid_skene:";

/** A judge's name; a panel's members are told apart elsewhere. */
export function shortJudge(judge) {
  if (judge.startsWith(BY_DAWID_SKENE)) return "panel (Dawid-Skene)";
  return judge.startsWith("panel:") ? "panel" : shortModel(judge);
}

/** Which repeat and prompt an answer is of, where that is not the usual one. */
export function variant(answer) {
  const parts = [answer.prompt_type !== "direct" && words(answer.prompt_type), answer.replicate > 0 && `repeat ${answer.replicate}`];
  return parts.filter(Boolean).join(", ");
}
