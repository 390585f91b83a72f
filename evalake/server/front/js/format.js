/** How values are written for people: a dash for what is unknown, hidden characters made visible. */

export const UNKNOWN = "–";

// Control, direction, private and surrogate characters and odd line ends: what would hide, reorder or control text.
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu;
const ESCAPED = (character) => `\\u${character.codePointAt(0).toString(16).padStart(4, "0")}`;

/** Text with nothing hidden in it, in at most `limit` characters. */
export function visible(value, limit = 2000) {
  const whole = String(value).replace(/\r\n?/g, "\n");
  const shown = whole.slice(0, limit).replace(HIDDEN, ESCAPED);
  return whole.length <= limit ? shown : `${shown}… (${count(whole.length - limit)} more characters)`;
}

/** A name on one line; a dash where there is none. */
export function name(value, limit = 120) {
  if (value === null || value === undefined || value === "") return UNKNOWN;
  return visible(value, limit).replace(/\s+/g, " ");
}

/** The beginning of a text on one line; how much of it there is beyond is not known where only its beginning is. */
export function beginning(value, limit) {
  const whole = String(value ?? "");
  return whole.length <= limit ? name(whole, limit) : `${name(whole.slice(0, limit), limit)}…`;
}

/** A word of the API as people read it: `timed_out` is "timed out". */
export function words(value) {
  return name(value).replaceAll("_", " ");
}

/** A whole number with its thousands told apart. */
export function count(value) {
  return isNumber(value) ? Math.round(value).toLocaleString("en-GB") : UNKNOWN;
}

/** How many of something there are, in words: "1 run", "2 runs". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** A number in as many digits as say something. */
export function number(value) {
  if (!isNumber(value)) return UNKNOWN;
  if (Number.isInteger(value)) return value.toLocaleString("en-GB");
  const digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toLocaleString("en-GB", {maximumFractionDigits: digits, signDisplay: "negative"}); // no "-0"
}

/** An interval, such as [0.25, 0.75]; its bounds may be negative. */
export function interval(low, high) {
  return isNumber(low) && isNumber(high) ? `[${number(low)}, ${number(high)}]` : "no interval";
}

/** A p value: a small one is below 0.001, never 0. */
export function probability(value) {
  return isNumber(value) && value < 0.001 ? "< 0.001" : number(value);
}

/** A share of 0 to 1 in per cent. */
export function percent(value) {
  return isNumber(value) ? `${(100 * value).toFixed(1)} %` : UNKNOWN;
}

/** US dollars. */
export function dollars(value) {
  if (!isNumber(value)) return UNKNOWN;
  return `$${value === 0 || value >= 1 ? value.toFixed(2) : value.toPrecision(3)}`;
}

/** A time in microseconds since 1970, in the reader's time zone. */
export function time(microseconds) {
  if (!isNumber(microseconds)) return UNKNOWN;
  const at = new Date(microseconds / 1000);
  if (Number.isNaN(at.getTime())) return UNKNOWN;
  return at.toLocaleString("en-GB", {dateStyle: "medium", timeStyle: "short"});
}

/** The day of a time in microseconds since 1970. */
export function day(microseconds) {
  if (!isNumber(microseconds)) return UNKNOWN;
  return new Date(microseconds / 1000).toLocaleDateString("en-GB", {day: "numeric", month: "short", year: "numeric"});
}

/** How long something took, from microseconds to microseconds. */
export function duration(from, to) {
  if (!isNumber(from) || !isNumber(to) || to < from) return UNKNOWN;
  return seconds((to - from) / 1e6);
}

/** Seconds as people say them. */
export function seconds(value) {
  if (!isNumber(value)) return UNKNOWN;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** The first characters of a hash, which tell it from others. */
export function shortHash(value) {
  return typeof value === "string" && value ? visible(value.slice(0, 10), 10) : UNKNOWN;
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
