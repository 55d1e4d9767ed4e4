// Searches all pages without a server: assets/search-index.js sets SEARCH_INDEX, a list of [file, title, anchor, heading, text].
"use strict";

const MOST_RESULTS = 12;

function loadIndex() {
  // Only once somebody searches. A script element works from file://, where fetch is refused.
  return (loadIndex.loading ||= new Promise((done, failed) => {
    const script = document.createElement("script");
    Object.assign(script, { src: "assets/search-index.js", onload: done, onerror: failed });
    document.head.append(script);
  }));
}

const plain = (text) => text.normalize("NFKD").replace(/\p{Mn}/gu, "").toLowerCase();
const occurrences = (text, word) => text.split(word).length - 1;

function found(query) {
  const words = plain(query).split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  window.SEARCH_PLAIN ||= SEARCH_INDEX.map(([, title, , heading, text]) => [title, heading, text].map(plain));
  const scored = SEARCH_INDEX.map((entry, k) => {
    const [title, heading, text] = window.SEARCH_PLAIN[k];
    const scores = words.map((word) => 8 * occurrences(heading, word) + (entry[2] ? 1 : 6) * occurrences(title, word) + Math.min(4, occurrences(text, word)));
    return { entry, words, score: scores.includes(0) ? 0 : scores.reduce((sum, one) => sum + one, 0) };
  });
  return scored.filter(({ score }) => score).sort((a, b) => b.score - a.score);
}

function excerpt(text, words) {
  const at = Math.max(0, plain(text).indexOf(words[0]));
  const start = at < 60 ? 0 : text.indexOf(" ", at - 60) + 1;
  const part = document.createElement("span");
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  text.slice(start, start + 180).split(new RegExp(`(${escaped.join("|")})`, "i")).forEach((piece, k) => {
    part.append(k % 2 ? Object.assign(document.createElement("mark"), { textContent: piece }) : piece);
  });
  return part;
}

function resultItem({ entry: [file, title, anchor, heading, text], words }) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: file + (anchor && "#" + anchor), textContent: heading && heading !== title ? `${title}: ${heading}` : title });
  item.append(link, document.createElement("br"), excerpt(text, words));
  return item;
}

document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.search");
  const [input, status, list] = ["input", "output", "ol"].map((name) => form.querySelector(name));
  const show = async () => {
    try {
      await loadIndex();
    } catch {
      status.textContent = "This folder has no search index: assets/search-index.js is missing.";
      return;
    }
    const results = found(input.value);
    status.textContent = input.value.trim() ? `${results.length} places found${results.length > MOST_RESULTS ? `, the best ${MOST_RESULTS} shown` : ""}` : "";
    list.replaceChildren(...results.slice(0, MOST_RESULTS).map(resultItem));
  };
  form.hidden = false;
  input.addEventListener("input", show);
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") { input.value = ""; show(); } });
});
