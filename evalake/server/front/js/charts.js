/** Plots in SVG, drawn for the width that there is; colours are the style sheet's, numbers follow as a table. */

import {h, svg} from "/js/dom.js";
import {number, visible} from "/js/format.js";
import {table} from "/js/table.js";

const NARROWEST = 260;
const TICKS = 5;
const MOST_LABELS = 12; // points with a name beside them
const CHARACTER = 7.5; // pixels of a label's letters, at most
const LABEL_LINES = [-7, 15, -21, 29, -35, 43, -49, 57]; // pixels from a point down to where its label may stand
export const COLOURS = 6; // lines that can be told apart

/** A plot with its title, a note and its numbers. `draw`: width in pixels to an SVG. `numbers`: headings and rows. */
export function figure({title, note = null, draw, alt, numbers = null}) {
  const box = h("div", {class: "plot", role: "img", "aria-label": `${alt} ${numbers ? "The numbers follow as a table." : ""}`});
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.max(NARROWEST, Math.floor(entry.contentRect.width));
    if (box.dataset.width === String(width)) return;
    box.dataset.width = String(width);
    box.replaceChildren(draw(width));
  });
  observer.observe(box);
  return h("section", {class: "figure"},
    h("h2", {}, title),
    note && h("p", {class: "note"}, note),
    box,
    numbers && h("details", {}, h("summary", {}, "The numbers"), table({caption: title, ...numbers})));
}

/** What stands in a plot's place when there is nothing to draw. */
export function emptyFigure(title, why) {
  return h("section", {class: "figure"}, h("h2", {}, title), h("p", {class: "empty"}, why));
}

/** A line the height of a text: values in order, the newest marked. */
export function sparkLine(values, width = 72, height = 18) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (i) => 3 + (i * (width - 6)) / Math.max(1, values.length - 1);
  const y = (value) => height - 3 - ((value - low) * (height - 6)) / (high - low || 1);
  return svg("svg", {class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Before: ${values.slice(0, -1).map(number).join(", ")}`},
    svg("polyline", {points: values.map((value, i) => `${x(i)},${y(value)}`).join(" ")}),
    svg("circle", {cx: x(values.length - 1), cy: y(values.at(-1)), r: 2.5}));
}

/** Vertical bars. `bars`: label, value, kind (a class, for its colour). */
export function columns(bars, width, height = 220) {
  const frame = {left: 36, right: 4, top: 16, bottom: 34, width, height};
  const scale = ticks(0, Math.max(1, ...bars.map((bar) => bar.value)), true);
  const y = vertical(frame, scale);
  const step = (width - frame.left - frame.right) / bars.length;
  const every = Math.ceil(52 / step);
  return canvas(frame, grid(frame, scale, y), bars.map((bar, i) => {
    const x = frame.left + i * step;
    return [
      svg("rect", {class: `bar ${bar.kind ?? ""}`, x: x + step * 0.1, width: step * 0.8, y: y(bar.value), height: y(0) - y(bar.value)},
        svg("title", {}, `${bar.label}: ${number(bar.value)}`)),
      bar.value > 0 && text(x + step / 2, y(bar.value) - 4, number(bar.value), "middle", "value"),
      i % every === 0 && text(x + step / 2, height - 14, bar.label, "middle"),
    ];
  }));
}

/** Horizontal bars, one a row, with the label above its bar so that long ones have room. */
export function rows(bars, width) {
  const row = 40;
  const largest = Math.max(1, ...bars.map((bar) => bar.value));
  const room = width - 56;
  const frame = {width, height: bars.length * row + 4};
  return canvas(frame, bars.map((bar, i) => [
    text(0, i * row + 14, fitting(bar.label, width), "start", "name"),
    svg("rect", {class: `bar ${bar.kind ?? ""}`, x: 0, y: i * row + 20, width: Math.max(1, (room * bar.value) / largest), height: 12},
      svg("title", {}, `${visible(bar.label, 300)}: ${number(bar.value)}`)),
    text((room * bar.value) / largest + 8, i * row + 30, number(bar.value), "start", "value"),
  ]));
}

/**
 * Lines over time. `series`: name and points of `{x, y, low, high, label}`, x in order; low and high may be missing.
 * `range`: lowest and highest y, or null to fit. `bands`: coloured strips behind, of `{from, to, kind}`.
 */
export function lines(series, width, {range = null, bands = [], height = 260, xLabel}) {
  const frame = {left: 46, right: 12, top: 12, bottom: 30, width, height};
  const points = series.flatMap((each) => each.points);
  const ys = points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]);
  const scale = range ? ticks(...range) : ticks(Math.min(...ys), Math.max(...ys));
  const y = vertical(frame, scale);
  const [first, last] = [Math.min(...points.map((p) => p.x)), Math.max(...points.map((p) => p.x))];
  const span = width - frame.left - frame.right - 12;
  const x = (value) => frame.left + 6 + (last === first ? span / 2 : ((value - first) / (last - first)) * span);
  const strips = bands.map(({from, to, kind}) =>
    svg("rect", {class: `strip ${kind}`, x: frame.left, width: width - frame.left - frame.right, y: y(to), height: y(from) - y(to)}));
  return canvas(frame, strips, grid(frame, scale, y), axisLabels(frame, first, last, x, xLabel),
    series.map((each, i) => line(each, i % COLOURS, x, y)));
}

/**
 * Points of two numbers. `points`: x, y, title, and what is known of label, colour and the ends of intervals (`left`,
 * `right` of x, `low`, `high` of y). `range`: the ends of both axes, or null to fit. `diagonal`: where x equals y.
 */
export function scatter(points, width, {xTitle, yTitle, range = null, diagonal = false}) {
  const height = Math.min(360, Math.max(260, width * 0.6));
  const frame = {left: 46, right: 14, top: 26, bottom: 48, width, height};
  const fit = (...names) => {
    const ends = points.flatMap((point) => names.map((each) => point[each])).filter(Number.isFinite);
    return range ? ticks(...range) : ticks(Math.min(...ends), Math.max(...ends));
  };
  const [across, up] = [fit("x", "left", "right"), fit("y", "low", "high")];
  const y = vertical(frame, up);
  const [first, last] = [across[0], across.at(-1)];
  const x = (value) => frame.left + ((value - first) / (last - first)) * (width - frame.left - frame.right);
  const bottom = height - frame.bottom;
  const labels = points.length <= MOST_LABELS ? placed(points.map((p) => ({text: fitting(p.label ?? "", width / 2), x: x(p.x), y: y(p.y)})), frame) : [];
  return canvas(frame, grid(frame, up, y),
    across.map((value, i) => (width > 420 || i % 2 === 0) && text(x(value), bottom + 18, number(value), i === 0 ? "start" : i === across.length - 1 ? "end" : "middle")),
    text(frame.left, 14, yTitle, "start"), text(width - frame.right, height - 8, xTitle, "end"),
    diagonal && svg("line", {class: "diagonal", x1: x(0), y1: y(0), x2: x(1), y2: y(1)}),
    points.map((p, i) => {
      const colour = `c${(p.colour ?? i) % COLOURS}`;
      return [
        Number.isFinite(p.left) && Number.isFinite(p.right) && svg("line", {class: `whisker ${colour}`, x1: x(p.left), x2: x(p.right), y1: y(p.y), y2: y(p.y)}),
        Number.isFinite(p.low) && Number.isFinite(p.high) && svg("line", {class: `whisker ${colour}`, x1: x(p.x), x2: x(p.x), y1: y(p.low), y2: y(p.high)}),
        svg("circle", {class: `point ${colour}`, cx: x(p.x), cy: y(p.y), r: 4.5}, svg("title", {}, visible(p.title, 500))),
      ];
    }),
    labels.map((label) => text(label.x, label.y, label.text, label.anchor, "name")));
}

/** Labels beside their points: further up or down where another label or point is; one that has no place is left out. */
function placed(labels, {left, top, bottom, width, height}) {
  const taken = labels.map(({x, y}) => ({left: x - 5, right: x + 5, top: y - 5, bottom: y + 5}));
  const isFree = (box) => box.left >= left && box.right <= width && box.top >= top - 12 && box.bottom <= height - bottom
    && !taken.some((other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom);
  return labels.filter((label) => label.text).flatMap(({text: written, x, y}) => {
    const wide = written.length * CHARACTER;
    const sides = x < (left + width) / 2 ? ["start", "end"] : ["end", "start"];
    for (const line of LABEL_LINES) {
      for (const anchor of sides) {
        const begin = anchor === "start" ? x + 8 : x - 8 - wide;
        const box = {left: begin, right: begin + wide, top: y + line - 11, bottom: y + line + 3};
        if (isFree(box)) {
          taken.push(box);
          return [{text: written, x: anchor === "start" ? begin : begin + wide, y: y + line, anchor}];
        }
      }
    }
    return [];
  });
}

/** Rows of dots on one axis, each row under its label. `rows`: label, and dots of x, low, high, colour and title. */
export function dots(rows, width) {
  const [line, head] = [12, 22];
  const heights = rows.map((row) => head + row.dots.length * line);
  const all = rows.flatMap((row) => row.dots);
  const ends = all.flatMap((dot) => [dot.x, dot.low, dot.high]).filter(Number.isFinite);
  const scale = ticks(Math.min(...ends), Math.max(...ends));
  const frame = {width, height: heights.reduce((sum, each) => sum + each, 0) + 28};
  const [left, right] = [6, 10];
  const x = (value) => left + ((value - scale[0]) / (scale.at(-1) - scale[0])) * (width - left - right);
  let top = 0;
  return canvas(frame,
    scale.map((value, i) => [svg("line", {class: "grid", x1: x(value), x2: x(value), y1: 0, y2: frame.height - 22}),
      text(x(value), frame.height - 6, number(value), i === 0 ? "start" : i === scale.length - 1 ? "end" : "middle")]),
    rows.map((row, k) => {
      const begin = top;
      top += heights[k];
      return [text(0, begin + 15, fitting(row.label, width), "start", "name"), row.dots.map((dot, i) => {
        const y = begin + head + i * line + line / 2;
        return [
          Number.isFinite(dot.low) && Number.isFinite(dot.high) && svg("line", {class: `whisker c${dot.colour}`, x1: x(dot.low), x2: x(dot.high), y1: y, y2: y}),
          svg("circle", {class: `point c${dot.colour}`, cx: x(dot.x), cy: y, r: 4}, svg("title", {}, visible(dot.title, 500))),
        ];
      })];
    }));
}

/** Which colour is which line. */
export function legend(series) {
  return h("ul", {class: "legend"}, series.map((each, i) =>
    h("li", {}, svg("svg", {class: "swatch", viewBox: "0 0 24 10", width: 24, height: 10, "aria-hidden": "true"},
      svg("line", {class: `line c${i % COLOURS}`, x1: 0, x2: 24, y1: 5, y2: 5}),
      svg("circle", {class: `point c${i % COLOURS}`, cx: 12, cy: 5, r: 3.5})), " ", visible(each.name, 300))));
}

function line(series, colour, x, y) {
  const path = series.points.map((p) => `${x(p.x)},${y(p.y)}`).join(" ");
  return [
    series.points.length > 1 && svg("polyline", {class: `line c${colour}`, points: path}),
    series.points.map((p) => [
      Number.isFinite(p.low) && Number.isFinite(p.high) && svg("line", {class: `whisker c${colour}`, x1: x(p.x), x2: x(p.x), y1: y(p.low), y2: y(p.high)}),
      svg("circle", {class: `point c${colour}`, cx: x(p.x), cy: y(p.y), r: 4}, svg("title", {}, visible(p.label, 300))),
    ]),
  ];
}

function axisLabels(frame, first, last, x, xLabel) {
  const bottom = frame.height - 8;
  if (first === last) return text(x(first), bottom, xLabel(first), "middle");
  return [text(frame.left, bottom, xLabel(first), "start"), text(frame.width - frame.right, bottom, xLabel(last), "end")];
}

function grid(frame, scale, y) {
  return scale.map((value) => [
    svg("line", {class: "grid", x1: frame.left, x2: frame.width - frame.right, y1: y(value), y2: y(value)}),
    text(frame.left - 6, y(value) + 4, number(value), "end"),
  ]);
}

function canvas(frame, ...children) {
  return svg("svg", {viewBox: `0 0 ${frame.width} ${frame.height}`, width: frame.width, height: frame.height, "aria-hidden": "true"}, children);
}

function text(x, y, content, anchor, kind = "") {
  return svg("text", {x, y, "text-anchor": anchor, class: kind}, content);
}

function vertical(frame, scale) {
  const [low, high] = [scale[0], scale.at(-1)];
  return (value) => frame.height - frame.bottom - ((value - low) / (high - low)) * (frame.height - frame.bottom - frame.top);
}

/** Round numbers from at most `low` to at least `high`. */
function ticks(low, high, whole = false) {
  const reach = high - low || Math.abs(high) || 1;
  const rough = reach / (TICKS - 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const steps = [1, 2, 2.5, 5, 10].map((multiple) => multiple * power).filter((each) => !whole || Number.isInteger(each));
  const step = steps.find((each) => each >= rough * 0.999) ?? 1;
  const start = Math.floor(low / step + 1e-9);
  const end = Math.max(start + 1, Math.ceil(high / step - 1e-9));
  return Array.from({length: end - start + 1}, (_, i) => Number(((start + i) * step).toPrecision(12)));
}

function fitting(label, width) {
  const room = Math.max(8, Math.floor(width / CHARACTER));
  const shown = visible(label, 300).replace(/\s+/g, " ");
  if (shown.length <= room) return shown;
  const end = Math.floor(room / 3); // names that begin alike are told apart by their ends
  return `${shown.slice(0, room - end - 1)}…${shown.slice(-end)}`;
}
