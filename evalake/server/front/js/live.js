/** What happens, as it happens: one WebSocket for the whole dashboard, opened again when it is lost. */

import {token} from "/js/api.js";

const FIRST_WAIT = 500, LONGEST_WAIT = 15000; // milliseconds until the next attempt

const listeners = new Map(); // channel -> set of functions
let socket = null;
let wait = FIRST_WAIT;
let tellState = () => {};

/** Be told in words when the connection is lost; "" when it is there. */
export function onConnection(tell) {
  tellState = tell;
}

/** Hear the events of a channel, `sessions` or `session:{id}`, until `signal` is aborted. */
export function listen(channel, listener, signal) {
  if (!listeners.has(channel)) {
    listeners.set(channel, new Set());
    say("subscribe", channel);
  }
  listeners.get(channel).add(listener);
  signal.addEventListener("abort", () => {
    listeners.get(channel)?.delete(listener);
    if (listeners.get(channel)?.size === 0) {
      listeners.delete(channel);
      say("unsubscribe", channel);
    }
  });
  if (!socket) connect();
}

/** Connect anew, as after a token was given. */
export function reconnect() {
  wait = FIRST_WAIT;
  if (socket) socket.close();
  else connect();
}

function connect() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const mine = new WebSocket(`${scheme}://${location.host}/api/v1/ws`, protocols());
  socket = mine;
  mine.addEventListener("open", () => {
    wait = FIRST_WAIT;
    tellState("");
    for (const channel of listeners.keys()) say("subscribe", channel);
  });
  mine.addEventListener("message", ({data}) => hear(data));
  mine.addEventListener("close", () => {
    socket = null;
    tellState("No live updates: connecting again …");
    setTimeout(() => socket ?? connect(), wait);
    wait = Math.min(LONGEST_WAIT, wait * 2);
  });
}

function protocols() {
  if (!token()) return ["evalake"];
  const bytes = String.fromCharCode(...new TextEncoder().encode(token()));
  return ["evalake", `bearer.${btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`];
}

function say(type, channel) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({type, channel}));
}

function hear(data) {
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return; // not one of ours
  }
  if (typeof event?.session_id !== "string") return; // an answer to what we said
  for (const channel of ["sessions", `session:${event.session_id}`]) {
    for (const listener of [...(listeners.get(channel) ?? [])]) listener(event);
  }
}
