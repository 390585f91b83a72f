/** Builds DOM nodes; text goes in as text only, so that no data can become markup. */

import {linkTo} from "/js/address.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. `attributes`: names to values; `on…` takes a listener, true an empty attribute, and null, undefined
 * or false leave it out; an `href` may be an address of ours. `children`: nodes, texts, numbers, arrays of them; null and false are skipped.
 */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/** Replace all that `parent` holds. */
export function show(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/** The same for what is read again while people look at it: what they opened stays open. */
export function showAgain(parent, ...children) {
  const opened = new Set([...parent.querySelectorAll("details[open]")].map(placeOf));
  show(parent, ...children);
  for (const details of parent.querySelectorAll("details")) details.open ||= opened.has(placeOf(details));
}

/** A link away from the dashboard; the text alone where the address is not http(s). */
export function outerLink(address, text) {
  return isWeb(address) ? h("a", {href: address, rel: "noopener noreferrer", target: "_blank"}, text) : h("span", {}, text);
}

let ids = 0;

/** An id that no other element has, for labels. */
export function freshId(prefix) {
  ids += 1;
  return `${prefix}-${ids}`;
}

/** What a details element is known by: the heading of its section, and its own summary. */
function placeOf(details) {
  const heading = details.closest("section")?.querySelector("h2");
  return JSON.stringify([heading?.textContent, details.querySelector("summary")?.textContent]);
}

function filled(element, attributes, children) {
  for (const [name, given] of Object.entries(attributes)) {
    const value = name === "href" && given ? linkTo(given) : given;
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
}

function isWeb(address) {
  try {
    return ["http:", "https:"].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}
