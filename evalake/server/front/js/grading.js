/** Grading in place: a line of a draw with its questions, by keyboard first; what is said goes to `human_labels`. */

import {EXPORTED} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {get, send} from "/js/api.js";
import {freshId, h, show} from "/js/dom.js";
import {count, counted, name, words} from "/js/format.js";
import {announce, message, problem} from "/js/page.js";
import {runPath} from "/js/runs_address.js";
import {verbatim} from "/js/text.js";

const NAME = "evalake-annotator"; // kept by the browser
const SEEN = "evalake-seen"; // samples that were shown before their blind questions were answered

/** The annotator's name, or "". */
export function annotator() {
  return localStorage.getItem(NAME) ?? "";
}

/** A form that asks for the annotator's name; `then` is called once it is kept. */
export function nameForm(then) {
  const id = freshId("annotator");
  const input = h("input", {id, name: "annotator", value: annotator(), required: true, maxlength: 200, autocomplete: "name"});
  return h("form", {class: "filters", "aria-label": "Who labels", onsubmit: (event) => {
    event.preventDefault();
    localStorage.setItem(NAME, input.value.trim());
    then();
  }}, h("div", {class: "search"}, h("label", {for: id}, "Your name, kept with each label"), input), h("div", {class: "actions"}, h("button", {type: "submit"}, "Use this name")));
}

function seen() {
  return JSON.parse(sessionStorage.getItem(SEEN) ?? "[]");
}

/** Whether a sample was shown before its blind questions were answered. */
export function wasSeen(itemId) {
  return seen().includes(itemId);
}

/** Show an item by `then`, after its blind questions where labels are written and the reader has a name. */
export async function blindFirst(runId, itemId, place, signal, then) {
  try {
    if (EXPORTED || !annotator() || wasSeen(itemId) || !(await get("/status", {}, signal)).writes) return then();
    const {blind: [line]} = await get(itemGrading(runId, itemId), {annotator: annotator()}, signal);
    if (!line) return then();
    const after = () => blindFirst(runId, itemId, place, signal, then);
    const reveal = () => {
      sessionStorage.setItem(SEEN, JSON.stringify([...seen(), itemId]));
      then();
    };
    return show(place, message("info", "Before you see the sample", "These questions are blind: answer them by what is shown here alone."),
      lineForm(runId, line, {signal, after, skip: reveal, skipText: "Show it unanswered"}));
  } catch (error) {
    return error.name === "AbortError" ? null : then(); // no such run, or a suite that asks nothing: the page says so
  }
}

function itemGrading(runId, itemId) {
  return `${runPath(runId)}/items/${encodeURIComponent(itemId)}/grading`;
}

/** What a reader may label of an item that is shown: its open questions, and whether its ground truth is right. */
export function itemPanel(runId, itemId, signal) {
  const place = h("div");
  const load = async () => {
    try {
      if (EXPORTED || !(await get("/status", {}, signal)).writes) return;
      show(place, panel(annotator() ? await get(itemGrading(runId, itemId), {annotator: annotator()}, signal) : null));
    } catch (error) {
      if (error.name !== "AbortError" && error.status !== 400) show(place, problem(error, "The questions cannot be shown", load));
    }
  };
  const panel = (asked) => h("section", {class: "panel answer"}, h("h2", {}, "Label"),
    h("p", {class: "note"}, h("a", {href: pathOf("grade", runId)}, "Label the draw of this run"), " one by one, by keyboard."),
    h("details", {open: !asked}, h("summary", {}, asked ? `As ${name(annotator())}` : "Who labels"), nameForm(load)),
    asked && [
      disputeForm(runId, itemId, asked, signal, load),
      asked.open.length ? asked.open.map((line) => h("details", {}, h("summary", {}, name(line.title, 200)), lineForm(runId, line, {signal, after: load, texts: false})))
        : h("p", {class: "note"}, asked.answered ? "You have answered all of its open questions." : "Nothing further is asked about it."),
      asked.blind.length > 0 && h("p", {class: "note"}, "Its blind questions are asked only before the sample is shown."),
    ]);
  load();
  return place;
}

function disputeForm(runId, itemId, {disputed_by: people}, signal, after) {
  const [mine, id] = [people.includes(annotator()), freshId("why")];
  const why = h("input", {id, name: "why", maxlength: 2000});
  const status = h("div");
  const write = async (event) => {
    event.preventDefault();
    try {
      await send("POST", `${runPath(runId)}/items/${encodeURIComponent(itemId)}/dispute`, {annotator: annotator(), disputed: !mine, note: why.value.trim() || null});
      announce(mine ? "The dispute is taken back" : "The ground truth is disputed");
      after();
    } catch (error) {
      show(status, problem(error, "This was not kept", null));
    }
  };
  return h("form", {class: "filters", "aria-label": "Dispute the ground truth", onsubmit: write},
    people.length > 0 && h("p", {class: "note"}, `Its ground truth is disputed by ${people.map((each) => name(each)).join(", ")}.`),
    !mine && h("div", {class: "search"}, h("label", {for: id}, "Why is the ground truth wrong?"), why),
    h("div", {class: "actions"}, h("button", {type: "submit"}, mine ? "Take the dispute back" : "Dispute the ground truth")), status);
}

/** The form of one line. `after` is called once it is kept, `skip` where the reader does not answer. */
export function lineForm(runId, line, {signal, after, skip = null, skipText = "Skip", texts = true}) {
  const status = h("div");
  const note = h("textarea", {id: freshId("note"), name: "note", maxlength: 2000, rows: 2});
  const questions = line.questions.map((each) => question(each));
  const form = h("form", {class: "grading", "aria-label": `Questions about ${name(line.title, 200)}`, onsubmit: async (event) => {
    event.preventDefault();
    const given = new FormData(form);
    const answers = Object.fromEntries(line.questions.map((each) => [each.name, given.get(each.name) || null]));
    try {
      await send("POST", `${runPath(runId)}/grading`, {annotator: annotator(), line: line.key, answers, note: note.value.trim() || null});
      announce("Kept");
      after();
    } catch (error) {
      show(status, problem(error, "This was not kept", null));
    }
  }},
  texts && h("h2", {}, name(line.title, 200)), h("p", {class: "note"}, name(line.words, 500)),
  texts && Object.entries(line.texts).map(([heading, text]) => [h("h3", {}, words(heading)), verbatim(text, words(heading))]),
  texts && !Object.values(line.texts).some(Boolean) && h("p", {class: "message warning"}, "Only the result of this answer was recorded: there is no text to read. Skip it, unless you have the text elsewhere."),
  questions, h("div", {}, h("label", {for: note.id}, "Why do you say so?"), note),
  h("div", {class: "actions"}, h("button", {type: "submit", class: "primary", "aria-keyshortcuts": "Enter"}, "Keep"),
    skip && h("button", {type: "button", "aria-keyshortcuts": "s", onclick: skip}, skipText)), status);
  if (texts) addEventListener("keydown", (event) => form.isConnected && keys(event, form, skip), {signal});
  return form;
}

function question({name: key, title, help, answers, most}) {
  const legend = h("legend", {}, title);
  if (answers.length) {
    return h("fieldset", {}, legend, help && h("p", {class: "note"}, help), h("div", {class: "choices"}, answers.map((answer, i) =>
      h("label", {}, h("input", {type: "radio", name: key, value: answer}), " ", words(answer), i < 9 && [" ", h("kbd", {}, i + 1)]))));
  }
  const id = freshId("score");
  return h("fieldset", {}, legend, help && h("p", {class: "note"}, help),
    h("label", {for: id}, `A number from 0 to ${count(most)}`), h("input", {id, name: key, type: "number", min: 0, max: most, step: "any"}));
}

/** 1 to 9 answer the first question that has no answer yet, Enter keeps, s skips. */
function keys(event, form, skip) {
  const {target, key} = event;
  const isText = /^(TEXTAREA|SELECT)$/.test(target.tagName) || (target.tagName === "INPUT" && target.type !== "radio");
  if (event.metaKey || event.altKey) return;
  if (key === "Enter" && (event.ctrlKey || (!isText && !/^(BUTTON|A|SUMMARY)$/.test(target.tagName)))) {
    event.preventDefault();
    form.requestSubmit();
  } else if (!isText && !event.ctrlKey && /^[1-9]$/.test(key)) {
    const sets = [...form.querySelectorAll("fieldset")].filter((each) => each.querySelector("[type=radio]"));
    const set = sets.find((each) => !each.querySelector(":checked")) ?? sets.at(-1);
    const radio = set?.querySelectorAll("[type=radio]")[Number(key) - 1];
    if (!radio) return;
    radio.checked = true;
    radio.focus();
  } else if (!isText && !event.ctrlKey && key === "s") skip?.();
}

/** How far a person is, in a draw and beside others. */
export function progress({total, done, people}) {
  const others = Object.entries(people).map(([who, n]) => `${name(who)} ${count(n)}`);
  return h("p", {class: "progress"}, h("progress", {max: 1, value: total ? done / total : 0, "aria-label": "Lines answered"}),
    `${count(done)} of ${counted(total, "line")} answered`, others.length > 0 && h("span", {class: "note"}, `By person: ${others.join(", ")}`));
}
