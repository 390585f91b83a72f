/** Where the reader is. A server has a path for each page; an exported folder has one file, and the address behind its `?`. */

/** The address of the run that an exported folder holds; null where a server is asked. */
export const EXPORTED = document.documentElement.dataset.exported ?? null;

/** The address of the page that is shown. */
export function here() {
  return addressOf(location.href);
}

/** The address that a link leads to, as a URL; null where that is no page of ours. */
export function addressOf(link) {
  const to = new URL(link, location.href);
  if (EXPORTED === null) return to.origin === location.origin ? to : null;
  const isOurs = to.protocol === location.protocol && to.host === location.host && to.pathname === location.pathname;
  return isOurs ? new URL((to.search.slice(1) || EXPORTED) + to.hash, "file:///") : null;
}

/** What a link to an address says; null, so that it is none, where nothing of it was exported. */
export function linkTo(address) {
  if (EXPORTED === null || !address.startsWith("/")) return address;
  const isOfRun = address.startsWith(EXPORTED) && ["/", "?", undefined].includes(address[EXPORTED.length]);
  return isOfRun ? `?${address}` : null;
}

/** Have the browser show an address, as one more place of its history or in place of the last. */
export function keepAddress(address, {replace = true} = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", linkTo(address));
}
