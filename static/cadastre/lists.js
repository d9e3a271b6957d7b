// The menus of a list: move columns up and down.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".cad-move").forEach((buttons) => (buttons.hidden = false));
});

document.addEventListener("click", (event) => {
  const button = event.target.closest(".cad-move button");
  if (button) moveColumn(button);
});

function moveColumn(button) {
  const row = button.closest("li");
  if (button.dataset.move === "up") row.previousElementSibling?.before(row);
  else row.nextElementSibling?.after(row);
  button.focus(); // a moved element loses the focus
}
