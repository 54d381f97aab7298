"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
// An element with text in it, never markup.
function make(tag, text, classes) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (classes) element.className = classes;
  return element;
}
// Pictures come as SVG of our own making; as XML they are parsed without running anything.
function draw(place, svg) {
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  place.replaceChildren(document.importNode(parsed, true));
}
const number = (value) => (value === null ? "–" : Number(value.toPrecision(8)).toString());
const signed = (value) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(3);
