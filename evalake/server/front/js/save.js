/** What leaves the page: files that are saved, texts that are copied. */

import {h} from "/js/dom.js";
import {announce} from "/js/page.js";

/** Have the browser save a file. */
export function offerFile(blob, filename) {
  const address = URL.createObjectURL(blob);
  h("a", {href: address, download: filename}).click();
  setTimeout(() => URL.revokeObjectURL(address), 60000); // once it is saved
}

/** Copy a text; where the browser does not let us, say so: the text is on the page to be taken by hand. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
    return true;
  } catch {
    announce("The browser does not let this page copy");
    return false;
  }
}
