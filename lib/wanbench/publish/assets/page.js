// Draws the figures of a page one after another, and folds or unfolds all its code.
"use strict";

const NARROW_PX = 760; // Plotly does not wrap titles: on narrower screens they stand above the drawing as text.
const PHONE_PX = 560;

function fitToScreen(figure, layout) {
  const width = figure.clientWidth;
  const title = figure.querySelector(".title");
  if (width < NARROW_PX && title && layout.title) {
    title.hidden = false;
    delete layout.title;
    layout.margin = { ...layout.margin, t: 30 };
  }
  if (width < PHONE_PX) {
    layout.legend = { ...layout.legend, orientation: "h", x: 0, xanchor: "left", y: -0.25, yanchor: "top" };
    layout.margin = { ...layout.margin, l: 50, r: 10 };
    if (layout.geo) {
      layout.height = Math.round(width * 1.15);
      layout.legend.y = 0;
      figure.querySelector(".drawing").style.minHeight = "0";
    }
  }
}

async function drawFigures() {
  for (const figure of document.querySelectorAll("figure.plot")) {
    const target = figure.querySelector(".interactive");
    try {
      const drawing = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
      fitToScreen(figure, drawing.layout);
      figure.classList.add("drawing-now");
      await Plotly.newPlot(target, drawing);
      figure.classList.add("drawn");
    } catch (error) {
      console.error("figure " + figure.id + " could not be drawn:", error);
    }
    figure.classList.remove("drawing-now");
  }
  document.documentElement.dataset.figures = "done";
}

function offerToggle() {
  const button = document.getElementById("toggle-code");
  const folds = document.querySelectorAll("details.code");
  if (!button || folds.length === 0) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const open = button.textContent === "Show all code";
    folds.forEach((fold) => { fold.open = open; });
    button.textContent = open ? "Fold all code" : "Show all code";
  });
}

document.addEventListener("DOMContentLoaded", () => {
  offerToggle();
  drawFigures();
});
