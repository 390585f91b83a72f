/** What every page has: its heading, messages, and words for those who listen. */

import {ApiError, keepToken} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {reconnect} from "/js/live.js";

const main = document.getElementById("main");
const announcer = document.getElementById("announcer");

/** Replace the page. */
export function showPage(...children) {
  show(main, children);
}

/** The page's one h1; the document is named after it. */
export function heading(text) {
  document.title = `${text} · evalake`;
  return h("h1", {tabindex: -1}, text);
}

/** Say something to screen readers, without moving the focus. */
export function announce(text) {
  announcer.textContent = "";
  requestAnimationFrame(() => {
    announcer.textContent = text;
  });
}

/** A box with a message. `kind`: error, warning or info; an error is said at once. */
export function message(kind, title, ...children) {
  return h("div", {class: `message ${kind}`, role: kind === "error" ? "alert" : "note"},
    title && h("p", {}, h("strong", {}, title)), children.map((child) => (typeof child === "string" ? h("p", {}, child) : child)));
}

/** Ask before something is done; true where the reader agrees. */
export function confirmed({title, text, yes}) {
  return new Promise((resolve) => {
    const ask = h("dialog", {"aria-labelledby": "ask-title", "aria-describedby": "ask-text"},
      h("h2", {id: "ask-title"}, title), h("p", {id: "ask-text"}, text),
      h("div", {class: "actions"},
        h("button", {type: "button", onclick: () => ask.close("no")}, "Cancel"),
        h("button", {type: "button", class: "primary", onclick: () => ask.close("yes")}, yes)));
    ask.addEventListener("close", () => {
      ask.remove();
      resolve(ask.returnValue === "yes");
    });
    document.body.append(ask);
    ask.showModal();
  });
}

/** What went wrong, as a message: with a way to try again, or to give the token that the service asks for. */
export function problem(error, title, retry) {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 401) return tokenForm(error, retry);
  const again = retry && ![400, 404].includes(error.status) && h("p", {}, h("button", {type: "button", onclick: retry}, "Try again"));
  return message("error", title, error.message, again);
}

function tokenForm(error, retry) {
  const input = h("input", {type: "password", id: "token", autocomplete: "off", required: true});
  const form = h("form", {onsubmit: (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    reconnect();
    retry();
  }}, h("label", {for: "token"}, "Token"), input, h("p", {}), h("button", {type: "submit", class: "primary"}, "Go on"));
  return message("error", "The service asks who you are", error.message, form);
}
