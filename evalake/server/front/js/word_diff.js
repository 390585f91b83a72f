/** What two texts have in common, word by word. */

const MOST_WORDS = 1500; // beyond them the table that finds the longest common part would get too large

/** Lists of [text, isOwn] for A and for B: what only one of them says is its own. Null where they are too long. */
export function wordDiff(a, b) {
  const [left, right] = [split(a), split(b)];
  if (left.length > MOST_WORDS || right.length > MOST_WORDS) return null;
  const lengths = commonLengths(left, right);
  const [ofA, ofB] = [[], []];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      add(ofA, left[i], false);
      add(ofB, right[j], false);
      i += 1;
      j += 1;
    } else if (j >= right.length || (i < left.length && lengths[i + 1][j] >= lengths[i][j + 1])) {
      add(ofA, left[i], true);
      i += 1;
    } else {
      add(ofB, right[j], true);
      j += 1;
    }
  }
  return [ofA, ofB];
}

function split(text) {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** How long the longest common part of the rests of both is, from each place on. */
function commonLengths(a, b) {
  const lengths = Array.from({length: a.length + 1}, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  return lengths;
}

function add(parts, text, isOwn) {
  const last = parts.at(-1);
  if (last && last[1] === isOwn) last[0] += text;
  else parts.push([text, isOwn]);
}
