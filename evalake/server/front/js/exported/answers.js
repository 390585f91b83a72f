/** Answers the requests that pages make to the API, from the files of an exported folder. */

import {EXPORTED} from "/js/address.js";
import {ApiError} from "/js/api.js";
import {read} from "/js/exported/files.js";
import {matching, shownOf} from "/js/exported/filters.js";

const PAGE = 50;

/** The answer to a request of `get`. */
export async function answer(path, query, signal) {
  const found = await toRequest(path, query);
  signal?.throwIfAborted();
  return found;
}

async function toRequest(path, query) {
  if (path === "/status") return {user: null, prefect_url: null, only_viewer: true};
  if (path === EXPORTED) return (await read("run")).run;
  if (path === `${EXPORTED}/values`) return (await read("run")).values;
  if (path === `${EXPORTED}/letters`) return (await read("run")).letters;
  if (path === `${EXPORTED}/items`) return itemPage(query);
  if (path.startsWith(`${EXPORTED}/items/`)) return item(decodeURIComponent(path.slice(`${EXPORTED}/items/`.length)), query);
  throw new ApiError(404, "This folder holds one run, and no such thing.");
}

async function itemPage({after, ...wanted}) {
  const {item_ids: ids} = await read("run");
  const found = await matching(wanted);
  const start = after ? found.indexOf(ids.indexOf(after)) + 1 : 0;
  const places = found.slice(start, start + PAGE);
  const items = await Promise.all(places.map(async (place) => {
    const view = await viewOf(place);
    return {...view, answers: view.answers.filter((each) => shownOf(each, wanted))};
  }));
  return {items, total: found.length, next: start + PAGE < found.length ? ids[places.at(-1)] : null, first: places.length ? start + 1 : 0};
}

async function viewOf(place) {
  const {in_list: size} = await read("run");
  return (await read(`list/${Math.floor(place / size)}`))[place % size];
}

async function item(id, wanted) {
  const {item_ids: ids, in_file: size} = await read("run");
  const place = ids.indexOf(id);
  if (place < 0) throw new ApiError(404, "The run has no such sample.");
  const whole = (await read(`items/${Math.floor(place / size)}`))[place % size];
  const found = await matching(wanted);
  const at = found.indexOf(place);
  const beside = at < 0 ? {number: null, previous: null, next: found[0]} : {number: at + 1, previous: found[at - 1], next: found[at + 1]};
  return {...whole, ...beside, total: found.length, previous: ids[beside.previous] ?? null, next: ids[beside.next] ?? null};
}
