"use strict";
(() => {
const modules = {};
modules['/js/one.js'] = (() => {
const one = 1;
class Other {}
return {one, Other};
})();
modules['/js/both.js'] = (() => {
const {one} = modules["/js/one.js"];

async function two() {
  return one;
}
return {two};
})();
modules['/js/main.js'] = (() => {
const {two} = modules["/js/both.js"];
const {one} = modules["/js/one.js"];
show(one, two);
return {};
})();
})();
