/** The pages as a server gives them. */

import {takeToken} from "/js/api.js";
import {onConnection} from "/js/live.js";
import {checksPage} from "/js/pages/checks.js";
import {comparePage} from "/js/pages/compare.js";
import {explorePage} from "/js/pages/explore.js";
import {itemPage} from "/js/pages/item.js";
import {itemsPage} from "/js/pages/items.js";
import {runPage} from "/js/pages/run.js";
import {runsPage} from "/js/pages/runs.js";
import {sessionPage} from "/js/pages/session.js";
import {sessionsPage} from "/js/pages/sessions.js";
import {sqlPage} from "/js/pages/sql.js";
import {trendsPage} from "/js/pages/trends.js";
import {start} from "/js/router.js";

const OF_SCORING = {sessions: sessionsPage, session: sessionPage, trends: trendsPage};
const OF_VIEWER = {
  runs: runsPage,
  run: runPage,
  items: itemsPage,
  item: itemPage,
  metrics: explorePage,
  compare: comparePage,
  checks: checksPage,
  sql: sqlPage,
};
const isOnlyViewer = document.documentElement.dataset.only === "viewer"; // `evalake view`: there are no sessions

takeToken();
addEventListener("hashchange", () => takeToken() && location.reload()); // a link with a token, in a tab that is open
onConnection((state) => {
  document.getElementById("connection").textContent = state;
});
start(isOnlyViewer ? OF_VIEWER : {...OF_SCORING, ...OF_VIEWER});
