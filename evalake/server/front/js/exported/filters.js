/** Which items of an exported run match, and in which order: the same as the server finds (evalake/server/viewer/items.py). */

import {ApiError} from "/js/api.js";
import {read} from "/js/exported/files.js";

const OF_SAMPLE = ["category", "label", "dataset"];
const OF_ANSWER = ["model", "judge", "prompt_type"]; // which answers are shown
const DECIDED = ["verdict", "correct", "error", "flag"]; // what one shown answer must have
const MEASURES = {score: "score", confidence: "confidence", latency: "latency_ms", cost: "cost_usd", tokens: "output_tokens"};

let last = null; // the newest filters and what they found, for the neighbours of each item that is read

/** The places of the items that match, in the order wanted. Throws ApiError for what a folder cannot answer. */
export function matching(wanted) {
  const said = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  const key = JSON.stringify(Object.entries(said).sort());
  if (last?.key !== key) {
    const found = find(said);
    last = {key, found};
    found.catch(() => { last = null; }); // so that it can be tried again
  }
  return last.found;
}

/** Whether an answer is one of those that are shown. */
export function shownOf(answer, wanted) {
  return OF_ANSWER.every((key) => isAmong(answer[key], wanted[key]));
}

async function find(wanted) {
  if (wanted.filter || wanted.like || wanted.sort === "answer") throw new ApiError(400, "This folder has no filter expressions, likeness or order by a column: “evalake view” has.");
  const {item_ids: ids} = await read("run");
  const all = Object.keys(wanted).every((key) => key === "sort" || key === "order");
  if (all && (wanted.sort ?? "position") === "position") return inOrder(ids.map((_, place) => ({place, by: place})), wanted);
  const saying = wanted.q ? await placesSaying(wanted) : null;
  const found = [];
  await forEachOf("list", "in_list", (item, place) => {
    if (saying && !saying.has(place)) return;
    const shown = item.answers.filter((each) => shownOf(each, wanted));
    if (matches(item, shown, wanted, saying !== null)) found.push({place, by: valueOf(item, shown, wanted.sort, place)});
  });
  return inOrder(found, wanted);
}

function matches(item, shown, wanted, isSaid) {
  if (!OF_SAMPLE.every((key) => isAmong(item[key], wanted[key]))) return false;
  if (OF_ANSWER.some((key) => wanted[key]) && !shown.length) return false;
  if (wanted.differ && !differs(shown, wanted.differ)) return false;
  return isSaid || !isDecided(wanted) || shown.some((each) => decidedSo(each, wanted));
}

function isDecided(wanted) {
  return DECIDED.some((key) => wanted[key]);
}

function decidedSo(answer, {verdict, correct, error, flag}) {
  return isAmong(answer.verdict, verdict)
    && (!correct || (answer.correct === null ? "unknown" : String(answer.correct)) === correct)
    && (!error || (error === "any" ? answer.error !== null : answer.error === error))
    && [flag ?? []].flat().every((each) => answer.flags.includes(each));
}

function isAmong(value, wanted) {
  return !wanted || [wanted].flat().includes(value);
}

/** Whether models, or judges, came to different verdicts where all else is the same. */
function differs(shown, differ) {
  const others = {models: ["judge", "prompt_type", "replicate"], judges: ["model", "prompt_type", "replicate"]}[differ];
  if (!others) throw new ApiError(400, "This folder holds one run: what changed since another run is shown by “evalake view”.");
  const decided = shown.filter((each) => outcome(each) !== null);
  const alike = Map.groupBy(decided, (each) => JSON.stringify(others.map((key) => each[key])));
  return [...alike.values()].some((group) => new Set(group.map(outcome)).size > 1);
}

function outcome({score, verdict}) {
  return score ?? verdict;
}

/** The places of the items that hold a text, in their sample or in a reply to a shown answer that is as wanted. */
async function placesSaying(wanted) {
  const text = lower([wanted.q].flat()[0]);
  const holds = (value) => value !== null && lower(value).includes(text);
  const places = new Set();
  await forEachOf("items", "in_file", (item, place) => {
    const answers = item.answers.filter((each) => shownOf(each, wanted) && decidedSo(each, wanted));
    const inSample = (answers.length > 0 || !isDecided(wanted)) && (holds(item.input) || holds(item.sample_id));
    const replied = new Set(item.calls.filter((call) => [call, ...call.others].some((each) => holds(each.text))).map((call) => call.prompt_hash));
    if (inSample || answers.some((each) => replied.has(each.prompt_hash) || replied.has(each.judge_hash))) places.add(place);
  });
  return places;
}

/** Text in which A to Z are small letters. */
function lower(text) {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Do something with each item of the files of a kind, of which one is read at a time. */
async function forEachOf(kind, sizeName, tell) {
  const {item_ids: ids, [sizeName]: size} = await read("run");
  for (let first = 0; first < ids.length; first += size) {
    (await read(`${kind}/${first / size}`)).forEach((item, i) => tell(item, first + i));
  }
}

/** What an item is sorted by; null, which comes last, where it has none. */
function valueOf(item, shown, sort, place) {
  if (sort === "sample") return item.sample_id;
  if (sort === "category") return item.category;
  if (sort === "wrong") return shown.length ? shown.filter((each) => each.correct === false).length : null;
  if (!(sort in MEASURES)) return place;
  const known = shown.map((each) => each[MEASURES[sort]]).filter((value) => value !== null);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

function inOrder(found, {order}) {
  const way = order === "desc" ? -1 : 1;
  const rank = ({by: a}, {by: b}) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * way);
  return found.sort((a, b) => rank(a, b) || a.place - b.place).map(({place}) => place);
}
