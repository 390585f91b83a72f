/** Long texts of models and tools, as DOM nodes: paragraphs, headings, lists, tables, code. Nothing in them becomes markup. */

import {h} from "/js/dom.js";
import {count, visible} from "/js/format.js";
import {table} from "/js/table.js";

const SHOWN = 20000; // characters that are shown before the reader asks for all
const FENCE = /^\s{0,3}(`{3,}|~{3,})/;
const HEADING = /^\s{0,3}(#{1,6})\s+(.*)$/;
const BULLET = /^\s{0,8}[-*+•]\s+(.*)$/;
const NUMBERED = /^\s{0,8}(\d{1,3})[.)]\s+(.*)$/;
const BETWEEN_CELLS = /(?<!\\)\|/;
const RULE = /^:?-+:?$/; // a cell of the line below a table's headings
const INLINE = /(`[^`\n]{1,400}`|\*\*[^*\n]{1,400}\*\*)/;

/** A text that a model wrote, with its paragraphs, lists and code. `level`: the heading above it, 1 to 5. */
export function prose(text, level = 2) {
  return bounded(text, (part) => h("div", {class: "prose"}, [...blocks(part.split("\n"), level)]));
}

/** A text as it is, in the letters of a terminal. `label` names it for those who cannot see it. */
export function verbatim(text, label) {
  return bounded(text, (part) => h("pre", {class: "verbatim", tabindex: 0, role: "group", "aria-label": label}, part));
}

/** JSON indented, any other text as it is. */
export function jsonOrText(text, label) {
  return verbatim(indented(text), label);
}

function indented(text) {
  if (typeof text !== "string") return JSON.stringify(text, null, 2);
  if (text.length > 200000 || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // cut or never JSON: shown as it is
  }
}

function bounded(text, render) {
  const whole = String(text);
  if (whole.length <= SHOWN) return render(visible(whole, SHOWN));
  const rest = count(whole.length - SHOWN);
  const box = h("div", {}, render(visible(whole.slice(0, SHOWN), SHOWN)));
  const more = h("button", {type: "button", onclick: () => {
    box.replaceChildren(h("pre", {class: "verbatim", tabindex: 0}, visible(whole, whole.length)));
    box.firstChild.focus();
  }}, `Show the other ${rest} characters`);
  box.append(h("p", {class: "note"}, more));
  return box;
}

function* blocks(lines, level) {
  let at = 0;
  let current = level;
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = HEADING.exec(line);
    if (!line.trim()) {
      at += 1;
    } else if (fence) {
      const end = after(lines, at + 1, (each) => !each.trim().startsWith(fence[1]));
      yield h("pre", {class: "verbatim", tabindex: 0}, lines.slice(at + 1, end).join("\n"));
      at = end + 1;
    } else if (heading) {
      current = Math.min(6, level + heading[1].length, current + 1); // screen readers miss a level that is left out
      yield h(`h${current}`, {}, inline(heading[2]));
      at += 1;
    } else if (BULLET.test(line) || NUMBERED.test(line)) {
      const pattern = BULLET.test(line) ? BULLET : NUMBERED;
      const end = after(lines, at, (each) => pattern.test(each));
      yield list(lines.slice(at, end), pattern);
      at = end;
    } else if (isTable(lines, at)) {
      const end = after(lines, at + 2, (each) => each.includes("|"));
      yield written(lines.slice(at, end));
      at = end;
    } else {
      const end = after(lines, at + 1, (each, place) => each.trim() && ![FENCE, HEADING, BULLET, NUMBERED].some((p) => p.test(each)) && !isTable(lines, place));
      yield h("p", {}, inline(lines.slice(at, end).join("\n")));
      at = end;
    }
  }
}

function list(lines, pattern) {
  const items = lines.map((line) => h("li", {}, inline(pattern.exec(line).at(-1))));
  if (pattern === BULLET) return h("ul", {}, items);
  return h("ol", {start: NUMBERED.exec(lines[0])[1]}, items);
}

/** Whether a table begins there: a line of headings, and below it one of dashes with as many cells. */
function isTable(lines, at) {
  if (!lines[at].includes("|") || !lines[at + 1]?.includes("|")) return false;
  const rules = cellsOf(lines[at + 1]);
  return rules.every((rule) => RULE.test(rule)) && rules.length === cellsOf(lines[at]).length;
}

function written([head, rule, ...lines]) {
  const headings = cellsOf(head).map((cell) => cell.replaceAll(/[*`]/g, ""));
  const kinds = cellsOf(rule).map((cell) => (cell.endsWith(":") ? "right" : null));
  const rows = lines.map(cellsOf).map((cells) => {
    const last = cells.slice(headings.length - 1).join(" | "); // what goes beyond the headings is not lost
    return headings.map((_, i) => inline(i === headings.length - 1 ? last : cells[i] ?? ""));
  });
  return table({caption: headings.join(", "), headings, rows, kinds, texts: true});
}

/** The cells of a line of a table; `\|` is a stroke within one. */
function cellsOf(line) {
  const cells = line.trim().split(BETWEEN_CELLS).map((cell) => cell.replaceAll("\\|", "|").trim());
  return cells.slice(cells[0] ? 0 : 1, cells.length > 1 && !cells.at(-1) ? -1 : undefined);
}

function inline(text) {
  return text.split(INLINE).map((part) => {
    if (part.length > 2 && part.startsWith("`") && part.endsWith("`")) return h("code", {}, part.slice(1, -1));
    if (part.length > 4 && part.startsWith("**") && part.endsWith("**")) return h("strong", {}, part.slice(2, -2));
    return part;
  });
}

/** The first place from `start` whose line is none of those; `belongs` is given a line and its place. */
function after(lines, start, belongs) {
  let end = start;
  while (end < lines.length && belongs(lines[end], end)) end += 1;
  return end;
}
