/** The scoring API: one call, and one error with a sentence that can be shown. */

import {visible} from "/js/format.js";

const ROOT = "/api/v1";
const TOKEN = "evalake-token"; // kept as long as the browser's tab

/** The bearer token that the reader gave, or null. */
export function token() {
  return sessionStorage.getItem(TOKEN);
}

/** Remember the bearer token; an empty one forgets it. */
export function keepToken(value) {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

/** Take the token of the address (#token=…, as `evalake up` prints it), which stays without it; whether there was one. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return false;
  keepToken(given);
  history.replaceState(null, "", location.pathname + location.search);
  return true;
}

/** What the API refused or could not do. `status` is that of HTTP, 0 where there was no answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let source = null; // of answers, in place of a server

/** Have `get` answered by a function of path, query and signal. */
export function answerFrom(read) {
  source = read;
}

/** GET `path` with `query` (null and "" are left out); the JSON of the answer. Throws ApiError. */
export function get(path, query = {}, signal = undefined) {
  return source ? source(path, query, signal) : call("GET", path + queryText(query), undefined, signal);
}

/** POST or PUT an object; the JSON of the answer. Throws ApiError. */
export function send(method, path, body) {
  return call(method, path, body);
}

/** POST an object, or GET without one; the file that is the answer, as a Blob. Throws ApiError. */
export async function fileOf(path, body = undefined) {
  const response = await ask(body === undefined ? "GET" : "POST", path, body);
  try {
    return await response.blob();
  } catch {
    throw new ApiError(0, "The server stopped in the middle of the file.");
  }
}

/** The path of a session's resource, its name encoded. */
export function sessionPath(sessionId, rest = "") {
  return `/scoring/sessions/${encodeURIComponent(sessionId)}${rest}`;
}

/** `?a=b`, or nothing. Lists become repeated names. */
export function queryText(query) {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((each) => [name, each]));
  const said = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return said.length ? `?${new URLSearchParams(said)}` : "";
}

async function call(method, path, body, signal) {
  return json(await ask(method, path, body, signal));
}

/** An answer that is no refusal. */
async function ask(method, path, body, signal) {
  const headers = {accept: "application/json"};
  if (token()) headers.authorization = `Bearer ${token()}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(ROOT + path, {method, headers, body: JSON.stringify(body), signal, credentials: "same-origin"});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer. It may be restarting; try again in a moment.");
  }
  if (!response.ok) throw new ApiError(response.status, reason(await json(response), response.status));
  return response;
}

async function json(response) {
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch {
    if (!response.ok) return null;
    throw new ApiError(response.status, "The server's answer is no JSON.");
  }
}

function reason(answer, status) {
  const detail = answer?.detail;
  if (typeof detail === "string") return visible(detail, 500);
  if (Array.isArray(detail)) return visible(detail.map((each) => each.msg).join("; "), 500);
  return `The server refused (HTTP ${status}).`;
}
