/** The pages as a server gives them. */

import {namesOf} from "/js/addresses.js";
import {takeToken} from "/js/api.js";
import {onConnection} from "/js/live.js";
import {start} from "/js/router.js";

const isOnlyViewer = document.documentElement.dataset.only === "viewer"; // `evalake view`: there are no sessions

takeToken();
addEventListener("hashchange", () => takeToken() && location.reload()); // a link with a token, in a tab that is open
onConnection((state) => {
  document.getElementById("connection").textContent = state;
});
const names = namesOf(isOnlyViewer ? ["viewer"] : ["scoring", "viewer"]);
const modules = await Promise.all(names.map((name) => import(`/js/pages/${name}.js`)));
start(Object.fromEntries(names.map((name, i) => [name, modules[i][`${name}Page`]])));
