// What of the page's structure screen readers rely on.
() => {
  const all = (css) => [...document.querySelectorAll(css)];
  const ids = all("[id]").map((e) => e.id);
  const levels = all("h1,h2,h3,h4,h5,h6").filter((e) => e.checkVisibility()).map((e) => Number(e.tagName[1]));
  return {
    lang: document.documentElement.lang,
    h1: all("h1").length,
    landmarks: ["header", "nav", "main"].filter((tag) => all(tag).length === 0),
    duplicateIds: ids.filter((id, i) => ids.indexOf(id) !== i),
    brokenReferences: all("[aria-labelledby],[aria-describedby],[aria-controls],label[for]")
      .flatMap((e) => ["aria-labelledby", "aria-describedby", "aria-controls", "for"].flatMap((a) => (e.getAttribute(a) ?? "").split(" ").filter(Boolean)))
      .filter((id) => !document.getElementById(id)),
    tablesWithoutCaption: all("table").filter((t) => !t.caption).length,
    skippedLevels: levels.filter((level, i) => i > 0 && level > levels[i - 1] + 1).length,
  };
}
