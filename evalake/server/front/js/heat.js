/** Sides in one metric: their letters, and a heat map of differences from the first side by the parts of each slice. */

import {shortJudge} from "/js/answers.js";
import {h} from "/js/dom.js";
import {count, interval, name, number, probability, words} from "/js/format.js";
import {itemsPath} from "/js/runs_address.js";
import {copy, offerFile} from "/js/save.js";
import {table} from "/js/table.js";

const LETTERS = "ABCDEF";

/** The samples behind a side's number, in one part of a slice. */
export function samplesOf({run_id: run, model, prompt_type: prompt}, filter = {}) {
  return itemsPath(run, {...(model && {model}), ...(prompt && {prompt_type: prompt}), ...filter});
}

/** Buttons that copy or save the page's address, and what it shows as Markdown. */
export function shared(markdown, explained) {
  const button = (text, act) => h("button", {type: "button", onclick: act}, text);
  return h("p", {class: "actions"}, button("Copy link", () => copy(location.href)), button("Copy as Markdown", () => copy(markdown)),
    button("Save Markdown", () => offerFile(new Blob([markdown], {type: "text/markdown"}), "comparison.md")),
    h("a", {class: "button", href: explained}, "Explain the difference"));
}

/** The panel of all sides in one metric. */
export function sidesPanel(page) {
  const {metric, letters, parts} = page;
  const widest = Math.max(...parts.flatMap(({cells}) => cells.map((cell) => Math.abs(cell?.difference ?? 0))));
  return h("section", {class: "panel"}, h("h2", {}, `By slice: ${words(metric)}`),
    letters.length > 0 && page.sides.length > 2 && h("p", {}, letters.map(({judge, letters: own}) => [judge && `${shortJudge(judge)}: `,
      own.map((each, i) => [i > 0 && ", ", `${LETTERS[i]} `, h("strong", {}, each)]), ". "]), "Sides that share no letter are significantly apart (5 %, Holm over all pairs of a judge)."),
    h("p", {class: "note"}, "Colours show the difference from A: ", h("span", {class: "key-of up2"}, "higher"), " or ", h("span", {class: "key-of down2"}, "lower"),
      ", paler where smaller. * marks what is significant (5 %, Holm over all parts). A number leads to its samples."),
    [...Map.groupBy(parts, (part) => part.judge).entries()].map(([judge, own]) => heatMap(page, judge, own, widest)));
}

function heatMap({metric, sides}, judge, parts, widest) {
  const caption = `${words(metric)} by slice${judge ? `, judged by ${shortJudge(judge)}` : ""}`;
  return h("div", {class: "heat"}, judge && h("h3", {}, shortJudge(judge)), table({
    caption, headings: ["Part", ...sides.map((side, i) => `${LETTERS[i]} ${name(side.name, 40)}`)], kinds: [null, ...sides.map(() => "figure")],
    rows: parts.map((part) => [part.slice === "all" ? "All samples" : [name(part.slice_value, 60), h("span", {class: "sub"}, words(part.slice))],
      ...part.cells.map((cell, i) => shownCell(cell, part, sides[i], widest))]),
  }));
}

function shownCell(cell, part, side, widest) {
  if (!cell) return "–";
  const linked = part.slice === "all" || Object.keys(part.filter).length > 0;
  const value = linked ? h("a", {href: samplesOf(side, {...part.filter, ...(part.judge && {judge: part.judge})})}, number(cell.value)) : number(cell.value);
  if (cell.difference === null) return h("div", {class: "heat-cell"}, value, h("span", {class: "sub"}, cell.units === null ? "" : `${count(cell.units)} units`));
  const sign = cell.difference > 0 ? "+" : "";
  const strength = cell.difference === 0 || !widest ? "" : `${cell.difference > 0 ? "up" : "down"}${Math.abs(cell.difference) >= widest / 2 ? 2 : 1}`;
  return h("div", {class: `heat-cell ${strength}`}, value, h("span", {class: "sub"}, cell.significant ? h("strong", {}, `${sign}${number(cell.difference)} *`) : `${sign}${number(cell.difference)}`, ` ${interval(cell.ci_low, cell.ci_high)}`),
    h("span", {class: "sub"}, cell.p_holm === null ? `${count(cell.units)} units` : `p ${probability(cell.p_holm)}, ${count(cell.units)} units`));
}
