/** One item: its input, its truth, and for each model the whole conversation with what was read out of it. */

import {EXPORTED} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {shortJudge, shortModel, variant, verdict} from "/js/answers.js";
import {get} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, counted, dollars, name, number, seconds, time, visible, words} from "/js/format.js";
import {blindFirst, itemPanel} from "/js/grading.js";
import {heading, message, problem, showPage} from "/js/page.js";
import {LOOKS, itemPath, itemsPath, placeOf, runPath, wantedOf} from "/js/runs_address.js";
import {copy} from "/js/save.js";
import {facts, table} from "/js/table.js";
import {jsonOrText, prose, verbatim} from "/js/text.js";
import {isTyping} from "/js/matrix.js";

const OPEN = 1500; // characters of a message that are shown without being asked for
const LONG = 120; // characters of a value that is a text of its own
const MOST_LINES = 3000; // of code that are numbered

export function itemPage({parts: [runId, itemId], query, signal, go}) {
  const [wanted, looks, at] = [wantedOf(query), wantedOf(query, LOOKS), query.getAll("at")];
  const kept = {...wanted, ...looks};
  const body = h("div");
  const place = h("nav", {class: "pager steps", "aria-label": "Neighbouring samples"});
  const trail = h("p", {class: "trail"}, h("a", {href: pathOf("runs")}, "Runs"), " › ", h("a", {href: runPath(runId)}, name(runId)), " › ", h("a", {href: itemsPath(runId, kept)}, "Samples"));
  const title = heading("Sample");
  showPage(trail, place, title, body);

  async function load() {
    try {
      const item = await get(`${runPath(runId)}/items/${encodeURIComponent(itemId)}`, wanted, signal);
      title.textContent = name(item.sample_id, 200);
      document.title = `${name(item.sample_id, 80)} · evalake`;
      show(place, steps(item, runId, kept, at));
      show(body, whole(item, at), itemPanel(runId, itemId, signal));
      body.querySelector(".answer[data-from]")?.scrollIntoView();
      addEventListener("keydown", (event) => step(event, item), {signal});
    } catch (error) {
      if (error.name !== "AbortError") show(body, problem(error, "The sample cannot be shown", load));
    }
  }

  function step(event, item) {
    if (isTyping(event) || event.shiftKey) return;
    const onScroll = event.target.closest?.("[role=region], [role=tablist], summary");
    const to = {j: item.next, k: item.previous, ArrowRight: onScroll ? null : item.next, ArrowLeft: onScroll ? null : item.previous}[event.key];
    if (to) go(itemPath(runId, to, {...kept, at}));
    if (event.key === "u") go(itemsPath(runId, kept));
  }

  blindFirst(runId, itemId, body, signal, load);
}

function steps(item, runId, kept, at) {
  const link = (to, text, key) => (to ? h("a", {class: "button", href: itemPath(runId, to, {...kept, at}), rel: key === "j" ? "next" : "prev", "aria-keyshortcuts": key}, text)
    : h("span", {class: "button off", "aria-disabled": "true"}, text));
  const where = item.number === null ? `none of the ${count(item.total)} that the filters keep` : `${count(item.number)} of ${count(item.total)}`;
  return [link(item.previous, "‹ Previous", "k"), h("span", {class: "note"}, where), link(item.next, "Next ›", "j"),
    h("span", {class: "note keys"}, h("kbd", {}, "k"), " previous, ", h("kbd", {}, "j"), " next, ", h("kbd", {}, "u"), " up to the list")];
}

function whole(item, at) {
  const calls = new Map(item.calls.map((call) => [call.call_id, call]));
  const groups = [...Map.groupBy(item.answers, (answer) => JSON.stringify(placeOf(answer))).values()];
  const from = groups.findIndex(([first]) => JSON.stringify(placeOf(first)) === JSON.stringify(at));
  const found = from >= 0 && groups[from].some((answer) => answer.matches !== false) ? from : groups.findIndex((answers) => answers.some((answer) => answer.matches));
  const told = new Set();
  return [
    h("div", {class: item.input_text ? "columns" : null}, h("div", {}, input(item)), h("div", {class: item.input_text ? null : "across"}, truth(item), overview(groups), takeAway(item))),
    groups.length === 0 && message("info", null, "Nobody has answered this sample in this run."),
    groups.map((answers, i) => ofModel(answers, calls, told, {id: `answer-${i}`, "data-from": i === found})),
  ];
}

/** The filter that keeps what failed as an answer did: its error, or its wrong verdict about samples of its label. */
function sameFailure({label}, {model, error, verdict: decided}) {
  const text = (value) => `"${String(value).replace(/[\\"]/g, "\\$&")}"`;
  const is = (column, value) => (value === null ? `${column} is null` : `${column} = ${text(value)}`);
  return [is("model", model), ...(error ? [is("error", error)] : ["correct = false", is("verdict", decided), is("label", label)])].join(" and ");
}

/** Ways to items like this one, and the item as JSON, to be copied. */
function takeAway(item) {
  const failed = item.answers.find((answer) => answer.matches && (answer.error || answer.correct === false)) ?? item.answers.find((answer) => answer.error || answer.correct === false);
  return h("p", {class: "actions"},
    EXPORTED === null && h("a", {class: "button", href: itemsPath(item.run_id, {like: item.item_id})}, "Near text"),
    EXPORTED === null && failed && h("a", {class: "button", href: itemsPath(item.run_id, {filter: sameFailure(item, failed)})}, `Same failure of ${shortModel(failed.model)}`),
    h("button", {type: "button", onclick: () => copy(JSON.stringify(item, null, 2))}, "Copy as JSON"));
}

function input(item) {
  const isReadable = item.input_text !== item.input;
  return h("section", {class: "panel"}, h("h2", {}, "Input"),
    item.input_text ? shownText(item) : h("p", {class: "empty"}, "Only the results were recorded, not the input."),
    isReadable && h("details", {}, h("summary", {}, `As it is kept, ${count(item.input.length)} characters`), jsonOrText(item.input, "Input as it is kept")));
}

function shownText(item) {
  const remarks = Map.groupBy(item.answers.flatMap((answer) => answer.remarks.map((each) => ({...each, answer}))), ({line}) => line);
  return item.input_is_code || remarks.size ? code(item.input_text, claimedLines(item), remarks) : verbatim(item.input_text, "Input");
}

/** A text with numbers of its lines; `marked` are those that the truth names, `remarks` what judges say of a line. */
function code(text, marked, remarks) {
  const lines = visible(text, 400000).split("\n");
  if (lines.length > MOST_LINES) return verbatim(text, "Input");
  const spoken = [...remarks.keys()].sort((a, b) => a - b);
  const places = spoken.flatMap((line) => [" ", h("a", {href: `#line-${line}`}, count(line))]);
  return [spoken.length > 0 && h("p", {class: "note"}, "Judges speak of line", places), h("div", {class: "verbatim code", tabindex: 0, role: "group", "aria-label": "Input"}, h("ol", {}, lines.map((line, i) =>
    h("li", {id: remarks.has(i + 1) ? `line-${i + 1}` : null, class: marked.has(i + 1) ? "marked" : null}, line || " ", remarks.get(i + 1)?.map(remark)))))];
}

/** What a judge says of a line, and of whose answer. */
function remark({text, answer}) {
  const whose = [shortModel(answer.model), answer.judge && `judged by ${shortJudge(answer.judge)}`, variant(answer)].filter(Boolean).join(", ");
  return h("p", {class: "remark"}, h("strong", {}, whose), ` ${visible(text, 1000)}`);
}

function claimedLines(item) {
  try {
    return new Set(JSON.parse(item.target ?? "{}").vulnerable_lines ?? []);
  } catch {
    return new Set();
  }
}

function truth(item) {
  return h("section", {class: "panel"}, h("h2", {}, "Ground truth"),
    facts([["Right answer", item.label && words(item.label)], ["Category", item.category && name(item.category)], ["Severity", item.severity && name(item.severity)],
      ["Difficulty", item.difficulty && name(item.difficulty)], ["Dataset", name(item.dataset)], ["Cluster", item.cluster && name(item.cluster)], ["Why", item.note && visible(item.note)]]),
    item.target && target(item.target));
}

function target(text) {
  let decoded;
  try {
    decoded = JSON.parse(text);
  } catch {
    return verbatim(text, "Ground truth");
  }
  if (decoded === null || typeof decoded !== "object") return verbatim(text, "Ground truth");
  const told = Object.entries(decoded).filter(([, value]) => value !== null && !(Array.isArray(value) && !value.length));
  return h("details", {}, h("summary", {}, "All of it"), facts(told.map(([key, value]) => [words(key), plain(value)])));
}

function overview(groups) {
  if (!groups.length) return null;
  return h("section", {class: "panel"}, h("h2", {}, "Answers"), h("ul", {class: "overview"}, groups.map((answers, i) =>
    h("li", {}, h("a", {href: `#answer-${i}`}, shortModel(answers[0].model)), variant(answers[0]) && h("span", {class: "sub"}, variant(answers[0])),
      h("span", {class: "chips"}, answers.map((answer) => h("span", {class: "chip"}, verdict(answer),
        answers.length > 1 && answer.judge && h("span", {class: "sub"}, shortJudge(answer.judge)))))))));
}

/** One model's answer: its conversation once, and beside each other what its judges said of it. */
function ofModel(answers, calls, seen, place) {
  const first = answers[0];
  const own = (answer) => answer.calls.map((each) => calls.get(each)).filter(Boolean);
  const subject = own(answers.find((answer) => own(answer).some((call) => call.by === "subject")) ?? first).filter((call) => call.by === "subject");
  const judged = answers.filter((answer) => answer.judge);
  return h("section", {class: "panel answer", ...place}, h("h2", {}, name(first.model), " ", judged.length ? null : verdict(first)),
    h("p", {class: "note"}, [variant(first), judged.length ? `judged by ${judged.map((answer) => shortJudge(answer.judge)).join(", ")}` : ""].filter(Boolean).join(" · ")),
    judged.length ? null : told(first),
    subject.map((call) => callView(call, 3, seen)),
    !subject.length && !judged.length && h("p", {class: "empty"}, first.error ? `No reply: ${words(first.error)}.` : "Not answered yet."),
    judged.length > 0 && h("div", {class: "judges"}, judged.map((answer) => judgement(answer, own(answer).filter((call) => call.by === "judge"), seen))));
}

function judgement(answer, calls, seen) {
  const isPanel = answer.judge.startsWith("panel:");
  return h("section", {class: "judgement"}, h("h3", {}, isPanel ? shortJudge(answer.judge).replace("panel", "Panel") : name(answer.judge), " ", verdict(answer)),
    isPanel && h("p", {class: "note"}, name(answer.judge, 300)),
    told(answer), findings(answer), calls.map((call) => callView(call, 4, seen, answer.values.some(({value}) => value !== null))));
}

/** What was read out of an answer, in the suite's words. */
function told(answer) {
  const values = answer.values.filter(({value}) => value !== null && value !== undefined);
  const [long, short] = [values.filter(isLong), values.filter((each) => !isLong(each))];
  return [
    answer.flags.length > 0 && h("ul", {class: "tags", "aria-label": "Marked as"}, answer.flags.map((flag) => h("li", {}, words(flag)))),
    answer.error && h("p", {class: "state bad"}, visible(words(answer.error), 500)),
    short.length > 0 && facts(short.map(({label, value}) => [label, plain(value)])),
    long.map(({label, value}) => h("details", {open: value.length < OPEN}, h("summary", {}, label), prose(value, 4))),
  ];
}

function isLong({value}) {
  return typeof value === "string" && value.length > LONG;
}

function findings({details, ...answer}) {
  if (!details.length) return null;
  const whose = [shortModel(answer.model), shortJudge(answer.judge), variant(answer)].filter(Boolean).map((each) => name(each));
  const columns = details[0].filter(({name: key}) => details.some((row) => row.some((each) => each.name === key && each.value !== null)));
  return table({
    caption: `In detail: ${whose.join(", ")}`, headings: columns.map(({label}) => label), texts: true, kinds: columns.map(() => null),
    rows: details.map((row) => columns.map(({name: key}) => finding(row.find((each) => each.name === key)))),
  });
}

function finding({name: key, value}) {
  if (key === "classification") return h("span", {class: "class-name"}, words(String(value).toLowerCase()));
  return plain(value);
}

function plain(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return value.length ? value.map((each) => (typeof each === "object" ? JSON.stringify(each) : visible(each, 300))).join(", ") : "none";
  return typeof value === "object" ? visible(JSON.stringify(value), 2000) : visible(value, 4000);
}

/** A call: what was asked, turn by turn, what came back, and what it took. `seen`: the messages that the page has shown. */
function callView(call, level, seen, folded = false) {
  return h("div", {class: "call"},
    h("ol", {class: "turns"},
      call.messages.length ? asked(call.messages, level, seen) : h("li", {class: "turn"}, h("p", {class: "note"}, call.error ? "The ledger keeps no request without a reply." : "The request was recorded elsewhere: its text is not here.")),
      reply(call, level, folded)),
    cost(call), raw(call), others(call));
}

/** The messages of a request; those that stand above already are folded into one line. */
function asked(messages, level, seen) {
  const keys = messages.map((each) => JSON.stringify(each));
  const known = keys.findIndex((key) => !seen.has(key));
  const again = known < 0 ? messages.length : known;
  keys.forEach((key) => seen.add(key));
  return [
    again > 0 && h("li", {class: "turn again"}, onDemand(false, `${counted(again, "message")} as shown above`, () => h("ol", {class: "turns"}, messages.slice(0, again).map((each) => turn(each, level))))),
    messages.slice(again).map((each) => turn(each, level)),
  ];
}

function turn({role, content, tool_calls: tools}, level) {
  const isTool = role.split(" ")[0] === "tool";
  const open = content.length <= OPEN && role !== "system";
  return h("li", {class: `turn ${role === "assistant" || isTool ? "tool" : ""}`}, h("p", {class: "who"}, h("strong", {}, isTool ? `result of ${name(role.slice(5) || "a tool")}` : words(role)), ` · asked with, ${count(content.length)} characters`),
    content && onDemand(open, "Read it", () => (role === "assistant" ? body(content, level) : isTool ? jsonOrText(content, `${role} message`) : verbatim(content, `${role} message`))),
    tools.map(toolCall));
}

function toolCall({name: tool, arguments: given}) {
  return h("div", {class: "tool-call"}, h("p", {class: "part"}, "Calls ", h("strong", {}, name(tool))), given && given !== "{}" && jsonOrText(given, `Arguments of ${name(tool)}`));
}

/** The request as it was sent, the reply as it came, and the commands that ask again: read when they are asked for. */
function raw(call) {
  const box = h("div");
  const details = h("details", {ontoggle: () => details.open && !box.childElementCount && load()}, h("summary", {}, "Raw request and reply, ask again"), box);
  const load = async () => {
    try {
      const {request, curl, python, why} = await get(`/requests/${call.prompt_hash}`);
      show(box, curl && copied("curl", curl), python && copied("Python", python), why && h("p", {class: "note"}, visible(why, 500)),
        request && copied("Request", request), call.text !== null && copied("Reply", call.text));
    } catch (error) {
      show(box, problem(error, "The request cannot be shown", load));
    }
  };
  return EXPORTED === null && details;
}

function copied(what, text) {
  return h("section", {}, h("p", {class: "part actions"}, h("strong", {}, what), h("button", {type: "button", onclick: ({target}) => copy(text).then((done) => { target.textContent = done ? "Copied" : "Not allowed: select it below"; })}, `Copy ${what}`)),
    verbatim(text, what));
}

function reply(call, level, folded) {
  return h("li", {class: call.error ? "turn error" : "turn said"},
    h("p", {class: "who"}, h("strong", {}, `${call.by === "judge" ? "judge" : "model"}: ${name(call.model)}`), call.finish_reason && ` · ended with ${name(call.finish_reason)}`),
    call.thinking && onDemand(false, `Thinking, ${count(call.thinking.length)} characters`, () => prose(call.thinking, level)),
    call.error_kind && h("p", {class: "state bad"}, words(call.error_kind)), call.error && verbatim(call.error, "Error"),
    call.refusal && onDemand(true, "Refusal", () => prose(call.refusal, level)),
    call.tool_calls.map(toolCall),
    call.text === null && !call.error && !call.tool_calls.length && h("p", {class: "empty"}, "No text came back."),
    call.answer && onDemand(!folded, `Its words, ${count(call.answer.length)} characters`, () => body(call.answer, level)));
}

function body(text, level) {
  return /^\s*(```|[[{])/.test(text) ? jsonOrText(text, "Reply") : prose(text, level);
}

function cost(call) {
  const parts = [
    call.input_tokens !== null && `${count(call.input_tokens)} tokens in${call.cached_input_tokens ? ` (${count(call.cached_input_tokens)} cached)` : ""}`,
    call.output_tokens !== null && `${count(call.output_tokens)} out${call.reasoning_tokens ? ` (${count(call.reasoning_tokens)} reasoning)` : ""}`,
    call.cost_usd !== null && dollars(call.cost_usd), call.latency_ms !== null && seconds(call.latency_ms / 1000),
    call.attempts > 1 && `${count(call.attempts)} attempts`, call.from_ledger && "from the ledger",
  ].filter(Boolean);
  const more = [
    ["Answered", time(call.answered_at_us)], ["First byte after", call.first_byte_ms !== null ? seconds(call.first_byte_ms / 1000) : null],
    ["Waited for limits", call.queue_ms !== null ? seconds(call.queue_ms / 1000) : null], ["Between attempts", call.waited_ms ? seconds(call.waited_ms / 1000) : null],
    ["Connected in", call.connect_ms !== null ? seconds(call.connect_ms / 1000) : null], ["Calls at once", call.concurrency !== null ? count(call.concurrency) : null],
    ["Failed attempts cost", call.failed_cost_usd !== null ? dollars(call.failed_cost_usd) : null], ["Attempts", count(call.attempts)],
    ["Answered as", call.model_reported && name(call.model_reported)], ["Asked by run", h("a", {href: runPath(call.run_id)}, name(call.run_id))],
    ["Parameters", Object.keys(call.parameters).length ? h("code", {}, visible(JSON.stringify(call.parameters), 1000)) : null], ["Prompt hash", h("code", {}, call.prompt_hash)],
  ];
  return h("details", {class: "took"}, h("summary", {}, ["What it took", ...parts].join(" · ")), facts(more));
}

function others(call) {
  if (!call.others.length) return null;
  return h("details", {}, h("summary", {}, `${count(call.others.length)} other ${call.others.length === 1 ? "answer" : "answers"} to the same prompt`),
    call.others.map((each) => h("div", {class: "turn"},
      h("p", {class: "who"}, `repeat ${count(each.replicate)} · ${time(each.answered_at_us)} · run `, h("a", {href: runPath(each.run_id)}, name(each.run_id)), each.reply_revision > 0 && ` · revision ${count(each.reply_revision)}`, each.is_replaced && " · replaced by a newer revision", !each.is_the_reply && " · came too late to be the reply"),
      each.text === null ? h("p", {class: "empty"}, "No text.") : body(each.text, 4))));
}

/** Something long that is built when the reader opens it, or at once. */
function onDemand(open, title, build) {
  if (open) return build();
  const details = h("details", {ontoggle: () => details.open && details.childElementCount === 1 && details.append(build())}, h("summary", {}, title));
  return details;
}
