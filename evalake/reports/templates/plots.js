"use strict";
(() => {
  const save = {
    name: "svg",
    title: "Save as SVG", // this page's policy lets no script read pixels, so it cannot be PNG
    click: (plot) => Plotly.downloadImage(plot, {format: "svg", filename: plot.dataset.plot}),
  };
  const settings = () => ({displaylogo: false, scrollZoom: false, modeBarButtons: [[{...save, icon: Plotly.Icons.camera}]]});
  const paper = 680;
  const character = 7; // pixels, of a wide one in 11 pixels' type
  const smallest = 8; // pixels of type that can be read
  const {library} = document.currentScript.dataset;
  const plots = [...document.querySelectorAll("[data-plot]")];
  const shown = () => plots.filter((element) => element.clientWidth);

  // Columns of colours: their names are upright where they have no room side by side, their texts shrink or go.
  const fit = ({data, layout}, width) => {
    const {columns, heading, text} = layout.meta;
    const room = (width - 36) / columns;
    const isFlat = heading * character < room;
    const above = isFlat ? 24 : heading * character + 12;
    const size = Math.min(11, Math.floor((room - 4) / (text * 0.64)));
    return {
      data: data.map((trace) => ({...trace, texttemplate: size < smallest ? "" : trace.texttemplate, textfont: {size}})),
      layout: {
        ...layout,
        height: layout.height + above,
        margin: {...layout.margin, t: above},
        xaxis: {...layout.xaxis, side: "top", tickangle: isFlat ? 0 : -90, tickfont: {size: 11}},
      },
    };
  };

  const draw = async (element, width) => {
    if (!window.Plotly) {
      element.textContent = `To draw this, ${library} has to lie in the folder above this page's; the numbers are below.`;
      return;
    }
    try {
      const spec = JSON.parse(document.getElementById(element.dataset.plot).textContent);
      const {data, layout} = spec.layout.meta ? fit(spec, width) : spec;
      await Plotly.react(element, data, {...layout, width}, settings());
    } catch (error) {
      console.error(error);
      element.textContent = "This plot could not be drawn; its numbers are below.";
    }
  };

  const observer = new ResizeObserver((changes) => {
    for (const {target, contentRect} of changes) {
      if (contentRect.width) draw(target, Math.floor(contentRect.width)); // none while its details are closed
    }
  });
  plots.forEach((element) => observer.observe(element));
  addEventListener("beforeprint", () => shown().forEach((element) => draw(element, Math.min(paper, element.clientWidth))));
  addEventListener("afterprint", () => shown().forEach((element) => draw(element, element.clientWidth)));
})();
