// The menus of a list: move columns up and down; Escape and a click elsewhere close a menu. On a phone a row unfolds.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".cad-move").forEach((buttons) => (buttons.hidden = false));
  document.querySelector("#result_list")?.classList.add("cad-folds");
});

document.addEventListener("click", (event) => {
  const unfold = event.target.closest(".cad-unfold button");
  if (unfold) unfold.setAttribute("aria-expanded", String(unfold.closest("tr").classList.toggle("cad-open")));
  const button = event.target.closest(".cad-move button");
  if (button) moveColumn(button);
});

function moveColumn(button) {
  const row = button.closest("li");
  if (button.dataset.move === "up") row.previousElementSibling?.before(row);
  else row.nextElementSibling?.after(row);
  button.focus(); // a moved element loses the focus
}
