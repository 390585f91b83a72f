"use strict";
for (const button of document.querySelectorAll("button.save")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    for (const panel of button.parentElement.querySelectorAll(".panel")) {
      const file = panel.querySelector("template").content.firstElementChild.cloneNode(true);
      const drawing = panel.querySelector(".on-screen svg").cloneNode(true);
      const place = file.querySelector("svg");
      drawing.setAttribute("y", place.getAttribute("y"));
      place.replaceWith(drawing);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(file)], {type: "image/svg+xml"}));
      link.download = `${file.getAttribute("aria-label")}.svg`;
      link.click();
      URL.revokeObjectURL(link.href);
    }
  });
}
