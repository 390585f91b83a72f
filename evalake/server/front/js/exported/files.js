/** The files of an exported folder. A page that was opened as a file may read no other, but it may run scripts beside it. */

import {ApiError} from "/js/api.js";

const MOST_KEPT = 100; // files; one has the texts of some items

const kept = new Map(); // the file that was wanted last is the last
const given = new Map();

/** What each file of data calls with its name and what it holds. */
globalThis.evalakeHolds = (name, data) => given.set(name, data);

/** What a file holds. Throws ApiError where it cannot be read. */
export function read(name) {
  const found = kept.get(name) ?? load(name);
  kept.delete(name);
  kept.set(name, found);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value);
  return found;
}

function load(name) {
  const found = new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `data/${name}.js`;
    const end = () => {
      const isThere = given.has(name);
      if (isThere) resolve(given.get(name));
      else reject(new ApiError(0, `data/${name}.js of this folder is missing or damaged: export the run again.`));
      given.delete(name);
      script.remove();
    };
    script.addEventListener("load", end);
    script.addEventListener("error", end);
    document.head.append(script);
  });
  found.catch(() => kept.delete(name)); // so that it can be tried again
  return found;
}
