/** The items of a run as a matrix: samples down; models, prompts, repeats, judges or runs across. */

import {EXPORTED, keepAddress} from "/js/address.js";
import {pathOf} from "/js/addresses.js";
import {fileOf, get, queryText} from "/js/api.js";
import {h, show} from "/js/dom.js";
import {count, counted, name} from "/js/format.js";
import {filterForm} from "/js/item_filters.js";
import {AXES, columnsOf, matrix, onKeys} from "/js/matrix.js";
import {announce, heading, problem, showPage} from "/js/page.js";
import {LOOKS, itemsPath, runPath, wantedOf} from "/js/runs_address.js";
import {offerFile} from "/js/save.js";

const KEYS = [["j k h l", "move"], ["Enter", "open"], ["/", "search"], ["f", "filter"], ["[ ]", "first and next page"], ["d", "density"]];

export function itemsPage({parts: [runId], query, signal, go}) {
  const [wanted, looks] = [wantedOf(query), wantedOf(query, LOOKS)];
  let after = query.get("after");
  let last = null;
  const results = h("section", {"aria-label": "Samples"});
  const filters = h("div", {}, h("p", {class: "filters note"}, "Reading by what the samples can be filtered …"));
  const trail = h("p", {class: "trail"}, h("a", {href: pathOf("runs")}, "Runs"), " › ", h("a", {href: runPath(runId)}, name(runId)), " › Samples");
  showPage(trail, heading("Samples"), filters, results);
  let asking = null;

  function change(changes) {
    Object.assign(wanted, changes);
    for (const [key, value] of Object.entries(wanted)) if (value === null || value === "") delete wanted[key];
    after = null;
    keepAddress(itemsPath(runId, {...wanted, ...looks}));
    load(true);
  }

  /** Change how the list looks, without asking for it again. */
  function look(changes) {
    Object.assign(looks, changes);
    keepAddress(itemsPath(runId, {...wanted, ...looks, after}));
    if ("beside" in changes) load(true);
    else if (last) draw(last);
  }

  async function load(tell = false) {
    asking?.abort();
    asking = new AbortController();
    const mine = AbortSignal.any([signal, asking.signal]);
    results.setAttribute("aria-busy", "true");
    try {
      last = await get(`${runPath(runId)}/items`, {...wanted, beside: looks.beside, after}, mine);
      draw(last);
      if (tell) announce(counted(last.total, "sample"));
    } catch (error) {
      if (error.name !== "AbortError") show(results, problem(error, "The samples cannot be shown", load));
    } finally {
      if (!mine.aborted) results.removeAttribute("aria-busy");
    }
  }

  function draw(answer) {
    const {items} = answer;
    if (!items.length) {
      show(results, h("p", {class: "empty"}, "No sample matches these filters."));
      return;
    }
    const columns = columnsOf(items, looks);
    show(results, h("div", {class: "toolbar"}, columnMenu(columns), tools()),
      matrix(runId, items, {columns, wanted, looks, sortBy: change}), pager(answer));
  }

  function columnMenu({all, axis}) {
    const box = (key, text) => h("label", {class: "inline"}, h("input", {type: "checkbox", checked: !hidden().includes(key), onchange: ({target}) =>
      keepOpen(() => look({hide: target.checked ? hidden().filter((each) => each !== key) : [...hidden(), key]}))}), " ", text);
    const button = ([key, text]) => h("button", {type: "button", "aria-pressed": String(key === axis), onclick: () => look({across: key === "models" ? null : key})}, text);
    return h("details", {class: "columns-menu"}, h("summary", {}, `Columns: ${AXES.find(([key]) => key === axis)[1].toLowerCase()}`),
      h("p", {class: "note"}, "Across"), h("div", {class: "actions"}, AXES.filter(([key]) => key !== "runs" || EXPORTED === null).map(button)),
      h("p", {class: "note"}, "Shown"), h("div", {class: "checks"}, box("input", "Input"), all.map((each) => box(each, name(each, 80)))));
  }

  function hidden() {
    return [looks.hide ?? []].flat();
  }

  function keepOpen(act) {
    act();
    const menu = results.querySelector(".columns-menu");
    if (menu) menu.open = true;
  }

  function tools() {
    const said = h("span", {class: "note"});
    const save = async (format) => {
      show(said, "Writing the file …");
      try {
        offerFile(await fileOf(`${runPath(runId)}/items.file${queryText({...wanted, format})}`), `${runId}.${format}`);
        show(said, "Saved");
        announce("The file is written");
      } catch (error) {
        show(said, problem(error, "There is no file", () => save(format)));
      }
    };
    return h("div", {class: "actions"},
      h("button", {type: "button", "aria-pressed": String(Boolean(looks.dense)), onclick: dense}, "Compact"),
      EXPORTED === null && [["csv", "CSV"], ["jsonl", "JSONL"], ["parquet", "Parquet"]].map(([format, text]) =>
        h("button", {type: "button", "aria-label": `Download ${text}`, onclick: () => save(format)}, `↓ ${text}`)), said,
      h("span", {class: "note keys"}, KEYS.flatMap(([key, what]) => [h("kbd", {}, key), ` ${what} `])));
  }

  function dense() {
    look({dense: looks.dense ? null : "1"});
  }

  function pager({items, total, next, first}) {
    const end = first + items.length - 1;
    return h("nav", {class: "pager", "aria-label": "Pages of the list"},
      after && h("a", {class: "button", href: itemsPath(runId, {...wanted, ...looks})}, "First page"),
      h("span", {class: "note"}, items.length ? `${count(first)}–${count(end)} of ${count(total)}` : ""),
      next && h("a", {class: "button", href: itemsPath(runId, {...wanted, ...looks, after: next})}, "Next page"));
  }

  async function offer() {
    try {
      const run = await get(runPath(runId), {}, signal);
      document.title = `Samples of ${name(run.run.run_id)} · evalake`;
      const others = EXPORTED === null ? (await get("/runs", {suite: run.run.suite}, signal)).runs.map((each) => each.run_id).filter((each) => each !== runId) : [];
      show(filters, filterForm(run, wanted, change, {others, beside: [looks.beside ?? []].flat(), lookBeside: (beside) => look({beside, across: beside.length ? "runs" : null})}));
    } catch (error) {
      if (error.name !== "AbortError" && error.status !== 401 && error.status !== 404) show(filters, problem(error, "The filters cannot be shown", offer));
    }
  }

  onKeys(results, signal, {
    "/": () => filters.querySelector("[name=q]")?.focus(),
    f: () => filters.querySelector("[name=filter]")?.focus(),
    d: dense,
    "]": () => last?.next && go(itemsPath(runId, {...wanted, ...looks, after: last.next})),
    "[": () => after && go(itemsPath(runId, {...wanted, ...looks})),
  });
  load().then(offer); // one after the other: of a large run the first page is there long before the rest
}
