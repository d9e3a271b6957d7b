// Keyboard navigation of maps, new CIDR rows in the pool form, and errors that end when their field is corrected.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".cad-map").forEach(enableArrowKeys);
  document.querySelectorAll("[data-add-cidr]").forEach((button) => {
    button.addEventListener("click", () => addRow());
  });
});

// An error of the last try says nothing about a value that was changed since.
for (const type of ["input", "change"]) {
  document.addEventListener(type, (event) => {
    const field = event.target.closest(".cad-field.errors");
    if (!field) return;
    field.classList.remove("errors");
    field.querySelectorAll(".cad-error").forEach((error) => error.remove());
  });
}

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

function addRow() {
  const list = document.querySelector(".cad-cidrs");
  const total = document.querySelector(`#id_${list.dataset.prefix}-TOTAL_FORMS`);
  const row = document.querySelector("#cidr-row").content.cloneNode(true);
  row.querySelectorAll("[name], [id], [for]").forEach((part) => {
    for (const attribute of ["name", "id", "for"]) {
      const value = part.getAttribute(attribute);
      if (value) part.setAttribute(attribute, value.replace("__prefix__", total.value));
    }
  });
  list.append(row);
  total.value = Number(total.value) + 1;
  list.lastElementChild.querySelector("input").focus();
}
