/** The tool roadmap: what sessions lack, by the points that it costs, with the sessions behind each theme. */

import {pathOf} from "/js/addresses.js";
import {emptyFigure, figure, rows} from "/js/charts.js";
import {h} from "/js/dom.js";
import {count, name, number, words} from "/js/format.js";

const SHOWN = 12; // bars of a kind
const BEHIND = 50; // sessions listed of a theme

export function roadmapFigures({roadmap_id: made, kinds, sessions, judge}) {
  if (!made) return emptyFigure("Tool roadmap", "None was made yet. The command evalake roadmap makes one, and so does its deployment every week.");
  const grouped = judge ? `by ${name(judge)}` : "by the words in common";
  return kinds.filter(({themes}) => themes.length).map(({kind, title, themes}) => {
    const rest = themes.length > SHOWN ? ` The first ${SHOWN} of ${count(themes.length)}.` : "";
    const box = figure({
      title: `Roadmap: ${title.toLowerCase()}`,
      note: `Points that ${count(sessions)} scored sessions lack, shared among what is named about them, grouped ${grouped}.${rest}`,
      alt: `${title}, by the points that they cost.`,
      draw: (width) => rows(themes.slice(0, SHOWN).map(({theme, points_lost}) => ({label: shown(theme, kind), value: Math.round(points_lost * 10) / 10})), width),
      numbers: {headings: ["Theme", "Sessions", "Points lost", "Mean score"],
        rows: themes.map((each) => [name(shown(each.theme, kind)), count(each.sessions), number(each.points_lost), number(each.mean_score)])},
    });
    box.append(h("details", {}, h("summary", {}, "The sessions behind each"), themes.map((each) => behind(each, kind))));
    return box;
  });
}

/** Patterns of failure are words, names of tools are names. */
function shown(theme, kind) {
  return kind === "failure" ? words(theme) : theme;
}

function behind({theme, mentions}, kind) {
  const rest = mentions.length - BEHIND;
  return h("details", {class: "inner"}, h("summary", {}, `${name(shown(theme, kind))} (${count(mentions.length)})`),
    h("ul", {}, mentions.slice(0, BEHIND).map((each) => h("li", {},
      h("a", {class: "id", href: pathOf("session", each.session_id)}, name(each.session_id)),
      ` ${name(each.name, 300)}`, each.text && `: ${name(each.text, 300)}`)),
    rest > 0 && h("li", {}, `and ${count(rest)} more`)));
}
