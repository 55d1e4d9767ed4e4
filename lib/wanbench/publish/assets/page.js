// Draws the figures of a page in the colours of the screen, gives each a toolbar, and folds or unfolds all code.
"use strict";

const NARROW_PX = 760; // Plotly does not wrap titles: on narrower screens they stand above the drawing as text.
const PHONE_PX = 560;
const WIDE_PX = [640, 860, 1100]; // A drawing whose texts collide is drawn wider, and scrolls.
const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const GROUND = [20, 24, 29]; // --ground of site.css in the dark

/* Colours */

function luminance(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function onDark(text) {
  // A grey turns around; any other colour gets lighter until it has a contrast of 3 to the dark ground.
  const named = { white: "#ffffff", black: "#000000" }[text.toLowerCase()] || text;
  const hex = /^#([0-9a-f]{6})$/i.exec(named);
  const parts = /^rgba?\(([^)]+)\)$/i.exec(named);
  if (!hex && !parts) return text;
  const [r, g, b, alpha] = hex ? [0, 2, 4].map((k) => parseInt(hex[1].slice(k, k + 2), 16)) : parts[1].split(",").map(Number);
  let rgb = [r, g, b];
  if (Math.max(...rgb) - Math.min(...rgb) < 45) {
    rgb = rgb.map((c, k) => Math.round(GROUND[k] + (1 - c / 255) * (232 - GROUND[k])));
  } else {
    while ((luminance(rgb) + 0.05) / (luminance(GROUND) + 0.05) < 3) rgb = rgb.map((c) => Math.round(c + (255 - c) * 0.15));
  }
  return alpha === undefined ? `rgb(${rgb})` : `rgba(${rgb},${alpha})`;
}

function recoloured(value, key = "") {
  if (typeof value === "string") return /color$|colorway$/i.test(key) ? onDark(value) : value;
  if (key === "colorscale" || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return /color$|colorway$/i.test(key) || typeof value[0] === "object" ? value.map((one) => recoloured(one, key)) : value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, recoloured(one, name)]));
}

/* Size */

function textFaults(figure) {
  // Texts of a drawing that another text covers, or that its edge cuts; a test calls it, too.
  const drawing = figure.querySelector(".interactive");
  const svgs = [...drawing.querySelectorAll("svg.main-svg")];
  if (!svgs.length) return [];
  const edge = svgs[0].getBoundingClientRect();
  const texts = [...drawing.querySelectorAll("svg.main-svg text")].filter((one) => one.textContent.trim() && one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .map((one) => ({ words: one.textContent.trim(), box: one.getBoundingClientRect(), turned: turned(one) })).filter(({ box }) => box.width > 0);
  const faults = [];
  texts.forEach(({ words, box, turned: angle }, k) => {
    if (box.left < edge.left - 1 || box.right > edge.right + 1 || box.top < edge.top - 1 || box.bottom > edge.bottom + 1) faults.push(`cut: ${words}`);
    for (const other of texts.slice(k + 1)) {
      if (covers(box, other.box) && !(angle && angle === other.turned)) faults.push(`over each other: ${words} | ${other.words}`);
    }
  });
  if (drawing.querySelector(".legend .scrollbar[height]:not([height='0'])")) faults.push("cut: legend");
  return faults;
}

function covers(one, other) {
  const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
  return wide > 1.5 && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 2.5;
}

function turned(element) {
  const matrix = element.getScreenCTM();
  return Math.round((Math.atan2(matrix.b, matrix.a) * 180) / Math.PI) % 90;
}

function smaller(axis) {
  axis.title = { ...axis.title, font: { ...axis.title?.font, size: 11 } };
  axis.tickfont = { ...axis.tickfont, size: 10 };
}

function fitted(figure, drawing, width, small) {
  const { data, layout, config } = structuredClone(drawing); // Plotly writes into what it draws
  const title = figure.querySelector(".title");
  if (title) title.hidden = !(figure.clientWidth < NARROW_PX && layout.title);
  if (title && !title.hidden) {
    delete layout.title;
    layout.margin = { ...layout.margin, t: 30 };
  }
  for (const trace of data) if (trace.type === "scatter" && /text/.test(trace.mode)) trace.cliponaxis = false;
  if (layout.geo) layout.geo.bgcolor ||= "#ffffff";
  if (figure.clientWidth < PHONE_PX) {
    layout.dragmode = false; // a finger scrolls the page
    const below = { orientation: "h", x: 0, xref: "paper", xanchor: "left", y: -0.22, yref: "paper", yanchor: "top" };
    layout.legend = { ...layout.legend, ...below };
    layout.margin = { ...layout.margin, l: 50, r: 10 };
    if (layout.geo) {
      layout.height = Math.round(width * 1.15);
      layout.legend.y = 0;
      figure.querySelector(".drawing").style.minHeight = "0";
    }
  }
  if (small) {
    layout.font = { ...layout.font, size: 11 };
    for (const note of layout.annotations || []) note.font = { ...note.font, size: 11 };
    for (const part of [layout, layout.template?.layout || {}]) {
      for (const name of Object.keys(part)) if (/^[xy]axis\d*$/.test(name)) smaller(part[name]);
    }
  }
  const target = figure.querySelector(".interactive");
  target.style.minWidth = width > figure.clientWidth ? `${width}px` : "";
  return DARK.matches ? { data: recoloured(data), layout: recoloured(layout), config } : { data, layout, config };
}

async function draw(figure) {
  const drawing = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const target = figure.querySelector(".interactive");
  const own = figure.clientWidth;
  const wider = WIDE_PX.filter((one) => one > own).map((one) => [one, true]);
  for (const [width, small] of [[own, own < PHONE_PX], [own, true], ...wider]) {
    const { data, layout, config } = fitted(figure, drawing, width, small);
    await Plotly.newPlot(target, data, layout, config);
    if (textFaults(figure).length && small) hideCoveredLabels(target);
    if (!textFaults(figure).length) return;
  }
}

function hideCoveredLabels(target) {
  // The names of points that are too close to each other; hovering and the table still show them.
  const shown = [];
  for (const label of target.querySelectorAll(".textpoint text")) {
    const box = label.getBoundingClientRect();
    if (shown.some((other) => covers(box, other))) label.style.visibility = "hidden";
    else shown.push(box);
  }
}

async function drawFigures() {
  for (const figure of document.querySelectorAll("figure.plot")) {
    try {
      figure.classList.add("drawing-now");
      await draw(figure);
      figure.classList.add("drawn");
      if (!figure.querySelector(".tools")) addTools(figure);
    } catch (error) {
      figure.classList.remove("drawn");
      console.error("figure " + figure.id + " could not be drawn:", error);
    }
    figure.classList.remove("drawing-now");
  }
  document.documentElement.dataset.figures = "done";
}

/* Tools of a figure: one tab stop, then the arrow keys. */

function zoom(plot, factor) {
  const change = {};
  for (const [name, axis] of Object.entries(plot._fullLayout)) {
    if (/^[xy]axis\d*$/.test(name) && axis.range && !axis.fixedrange) {
      const [low, high] = axis.range.map((end) => axis.r2l(end));
      const half = (high - low) / 2 / factor;
      change[`${name}.range`] = [(low + high) / 2 - half, (low + high) / 2 + half].map((end) => axis.l2r(end));
    }
    if (/^geo\d*$/.test(name)) change[`${name}.projection.scale`] = axis.projection.scale * factor;
  }
  return Plotly.relayout(plot, change);
}

function save(plot, format) {
  const { width, height } = plot._fullLayout;
  const filename = plot.closest("figure").id.replace("figure-", "");
  return Plotly.downloadImage(plot, { format, width, height, filename, scale: format === "png" ? 2 : 1 });
}

const TOOLS = [
  ["Zoom in", (plot) => zoom(plot, 1.5)],
  ["Zoom out", (plot) => zoom(plot, 1 / 1.5)],
  ["Reset", (plot) => draw(plot.closest("figure"))],
  ["Save SVG", (plot) => save(plot, "svg")],
  ["Save PNG", (plot) => save(plot, "png")],
];

function addTools(figure) {
  const bar = document.createElement("div");
  bar.className = "tools";
  bar.setAttribute("role", "toolbar");
  bar.setAttribute("aria-label", "Figure");
  const buttons = TOOLS.map(([name, act], k) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: name, tabIndex: k ? -1 : 0 });
    button.addEventListener("click", () => act(figure.querySelector(".interactive")));
    bar.append(button);
    return button;
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    buttons.forEach((one) => { one.tabIndex = one === next ? 0 : -1; });
    next.focus();
    event.preventDefault();
  });
  figure.querySelector(".drawing").after(bar);
}

/* The page */

function offerToggle() {
  const button = document.getElementById("toggle-code");
  const folds = document.querySelectorAll("details.code");
  if (!button || folds.length === 0) return;
  button.hidden = false;
  for (const fold of folds) fold.querySelector("summary").tabIndex = -1; // the button does it for the keyboard
  button.addEventListener("click", () => {
    const open = button.textContent === "Show all code";
    folds.forEach((fold) => { fold.open = open; });
    button.textContent = open ? "Fold all code" : "Show all code";
  });
}

const scrolling = new ResizeObserver((seen) => seen.forEach(({ target }) => {
  // Whatever scrolls can be reached with the keyboard; nothing else stops the Tab key.
  const scrolls = target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1;
  if (scrolls) target.tabIndex = 0;
  else target.removeAttribute("tabindex");
  if (!target.matches(".wide, .drawing")) return;
  const table = target.querySelector("table");
  const name = table?.caption?.textContent || "Wide content";
  for (const [key, value] of [["role", "group"], ["aria-label", name]]) scrolls ? target.setAttribute(key, value) : target.removeAttribute(key);
}));

function openTarget() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (target) target.scrollIntoView();
}

/* The ledger of claims */

function choices(table, name) {
  const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.trim() === name);
  const values = new Set([...table.tBodies[0].rows].map((row) => row.cells[column]?.textContent.trim()).filter(Boolean));
  return { name, column, values: [...values].sort() };
}

function filterLedger(table) {
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase(), cells: [...row.cells].map((cell) => cell.textContent.trim()) }));
  const form = document.createElement("form");
  form.className = "filters";
  form.setAttribute("role", "search");
  form.setAttribute("aria-label", "Filter the claims");
  const add = (name, control) => {
    const label = document.createElement("label");
    label.append(name, control);
    form.append(label);
    return control;
  };
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const selects = heads.filter((name) => /^(article|kind|page)$|verdict|re-run|own numbers/i.test(name)).map((name) => {
    const { column, values } = choices(table, name);
    const select = add(name, document.createElement("select"));
    select.append(new Option("all", ""), ...values.map((value) => new Option(value, value)));
    return { column, select };
  });
  const words = add("Text", Object.assign(document.createElement("input"), { type: "search" }));
  const shown = form.appendChild(document.createElement("output"));
  const update = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    for (const { row, text, cells } of rows) {
      const fits = selects.every(({ column, select }) => !select.value || cells[column] === select.value) && wanted.every((word) => text.includes(word));
      row.hidden = !fits;
      n += fits;
    }
    shown.textContent = `${n} of ${rows.length} claims shown`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  const wide = table.closest(".wide");
  wide.before(...[...wide.childNodes].filter((one) => one !== table), form); // only the table scrolls
  update();
}

document.addEventListener("DOMContentLoaded", () => {
  offerToggle();
  document.querySelectorAll("table.ledger").forEach(filterLedger);
  document.querySelectorAll(".wide, pre, math[display='block'], .drawing").forEach((one) => scrolling.observe(one));
  window.addEventListener("hashchange", openTarget);
  openTarget();
  let drawn = drawFigures();
  DARK.addEventListener("change", () => { drawn = drawn.then(drawFigures); });
});
