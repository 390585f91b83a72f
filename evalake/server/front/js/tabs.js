/** Tabs, as the ARIA practices describe them: arrow keys move between them, and one panel shows the chosen one. */

import {freshId, h} from "/js/dom.js";

/** `choices`: keys and labels. Returns the list of tabs and their panel; `turn` is called with the key of a new choice. */
export function tabs(label, choices, chosen, turn) {
  const panelId = freshId("panel");
  const buttons = choices.map(([key, text]) => h("button", {type: "button", role: "tab", id: freshId("tab"), "data-key": key,
    "aria-controls": panelId, onclick: () => choose(key), onkeydown: (event) => move(event, key)}, text));
  const panel = h("div", {role: "tabpanel", id: panelId, tabindex: 0});

  function choose(key) {
    mark(key);
    turn(key);
  }

  function move(event, key) {
    const at = choices.findIndex(([each]) => each === key);
    const last = choices.length - 1;
    const to = {ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(choices[to][0]);
    buttons[to].focus();
  }

  function mark(key) {
    for (const button of buttons) {
      const isChosen = button.dataset.key === key;
      button.setAttribute("aria-selected", isChosen);
      button.tabIndex = isChosen ? 0 : -1;
      if (isChosen) panel.setAttribute("aria-labelledby", button.id);
    }
  }

  mark(chosen);
  return {list: h("div", {class: "tabs", role: "tablist", "aria-label": label}, buttons), panel};
}
