"use strict";
(() => {
  const settings = {displayModeBar: false, responsive: true, scrollZoom: false};
  const paper = 680;
  const plots = [...document.querySelectorAll("[data-plot]")];
  const draw = async (element) => {
    try {
      const spec = JSON.parse(document.getElementById(element.dataset.plot).textContent);
      await Plotly.newPlot(element, spec.data, spec.layout, settings);
    } catch (error) {
      console.error(error);
      element.textContent = "This plot could not be drawn; its numbers are below.";
    }
  };
  plots.forEach(draw);
  const width = (value) => plots.forEach((element) => Plotly.relayout(element, {width: value, autosize: !value}));
  addEventListener("beforeprint", () => width(paper));
  addEventListener("afterprint", () => width(null));
})();
