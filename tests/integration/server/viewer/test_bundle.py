"""Modules as one script: all that they import, in order, and nothing left that only a module may say."""

import re
from pathlib import Path

from evalake.server.pages import FOLDER
from evalake.server.viewer.export import bundle


def test_each_module_stands_once_before_those_that_import_it(tmp_path: Path) -> None:
    modules = {
        "main": 'import {two} from "/js/both.js";\nimport {one} from "/js/one.js";\nshow(one, two);\n',
        "both": 'import {one} from "/js/one.js";\n\nexport async function two() {\n  return one;\n}\n',
        "one": "export const one = 1;\nexport class Other {}\n",
    }
    (tmp_path / "js").mkdir()
    for name, text in modules.items():
        (tmp_path / "js" / f"{name}.js").write_text(text)

    assert bundle(tmp_path, "/js/main.js").splitlines() == [
        '"use strict";',
        "(() => {",
        "const modules = {};",
        "modules['/js/one.js'] = (() => {",
        "const one = 1;",
        "class Other {}",
        "return {one, Other};",
        "})();",
        "modules['/js/both.js'] = (() => {",
        'const {one} = modules["/js/one.js"];',
        "",
        "async function two() {",
        "  return one;",
        "}",
        "return {two};",
        "})();",
        "modules['/js/main.js'] = (() => {",
        'const {two} = modules["/js/both.js"];',
        'const {one} = modules["/js/one.js"];',
        "show(one, two);",
        "return {};",
        "})();",
        "})();",
    ]


def test_nothing_of_the_pages_is_left_that_only_a_module_may_say() -> None:
    assert not re.search(r"^\s*(import|export)\b", bundle(FOLDER, "/js/exported/main.js"), re.MULTILINE)
