// The menus of a list: move columns up and down; Escape and a click elsewhere close a menu.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
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
