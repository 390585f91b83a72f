"use strict";
for (const button of document.querySelectorAll("button.save")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    for (const drawing of button.parentElement.querySelectorAll(".on-screen svg")) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([drawing.outerHTML], {type: "image/svg+xml"}));
      link.download = `${drawing.getAttribute("aria-label").split(/[.:]/)[0]}.svg`;
      link.click();
      URL.revokeObjectURL(link.href);
    }
  });
}
