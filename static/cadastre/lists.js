// The menus of a list: move columns up and down; Escape and a click elsewhere close a menu.
// Fields of filters suggest the names that contain what is typed.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("input[data-names]").forEach(suggestNames);
  document.querySelectorAll(".cad-move").forEach((buttons) => (buttons.hidden = false));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest(".cad-move button");
  if (button) moveColumn(button);
  document.querySelectorAll(".cad-tool[open]").forEach((menu) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest(".cad-tool[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

function moveColumn(button) {
  const row = button.closest("li");
  if (button.dataset.move === "up") row.previousElementSibling?.before(row);
  else row.nextElementSibling?.after(row);
  button.focus(); // a moved element loses the focus
}

function suggestNames(input) {
  const list = document.createElement("datalist");
  list.id = `${input.name}-names`;
  input.after(list);
  input.setAttribute("list", list.id);
  let newest = 0;
  const load = async () => {
    const number = ++newest;
    const response = await fetch(`${input.dataset.names}?q=${encodeURIComponent(input.value)}`);
    if (!response.ok || number !== newest) return; // a later answer is on its way
    const { names } = await response.json();
    list.replaceChildren(...names.map((name) => new Option(name, name)));
  };
  input.addEventListener("focus", load, { once: true });
  input.addEventListener("input", load);
}
