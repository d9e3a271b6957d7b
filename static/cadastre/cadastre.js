// Keyboard navigation of maps.
"use strict";

// The page, and later each part of it that has renewed itself.
document.addEventListener("htmx:load", ({ target }) => {
  target.querySelectorAll(".cad-map").forEach(enableArrowKeys);
});

// What is picked is written into the field beside, where it can be read and changed.
document.addEventListener("change", (event) => {
  const field = document.getElementById(event.target.dataset?.fills ?? "");
  if (field) field.value = event.target.value.replace("T", " ");
});

// Makes a map one tab stop; arrow keys move between its cells. Without this script each cell is a tab stop.
function enableArrowKeys(map) {
  const cells = Array.from(map.children);
  const columns = Number(map.dataset.columns);
  const name = map.closest(".cad-map-block").querySelector(".cad-map-name");
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  const showName = (event) => {
    const title = event.target.closest("a, g")?.querySelector("title");
    if (title) name.textContent = title.textContent;
  };
  cells.forEach((cell, index) => cell.setAttribute("tabindex", index ? "-1" : "0"));
  map.addEventListener("focusin", showName);
  map.addEventListener("mouseover", showName);
  map.addEventListener("keydown", (event) => {
    const from = cells.indexOf(event.target);
    const to = event.key === "Home" ? 0 : event.key === "End" ? cells.length - 1 : from + steps[event.key];
    if (from < 0 || !cells[to]) return;
    event.preventDefault();
    cells[from].setAttribute("tabindex", "-1");
    cells[to].setAttribute("tabindex", "0");
    cells[to].focus();
  });
}
