/** The pages of one run in an exported folder, which no server is asked for. */

import {answerFrom} from "/js/api.js";
import {answer} from "/js/exported/answers.js";
import {itemPage} from "/js/pages/item.js";
import {itemsPage} from "/js/pages/items.js";
import {runPage} from "/js/pages/run.js";
import {start} from "/js/router.js";

answerFrom(answer);
start({run: runPage, items: itemsPage, item: itemPage});
