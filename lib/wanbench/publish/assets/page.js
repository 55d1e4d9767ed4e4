// Draws the figures of a page one after another, and folds or unfolds all its code.
"use strict";

async function drawFigures() {
  for (const figure of document.querySelectorAll("figure.plot")) {
    const target = figure.querySelector(".interactive");
    try {
      const drawing = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
      figure.classList.add("drawing-now");
      await Plotly.newPlot(target, drawing.data, drawing.layout, drawing.config);
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
