// Import pages: file drop area, print button of a wave.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-drop]").forEach(enableFileDrop);
  document.querySelectorAll("[data-print]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  });
});

function enableFileDrop(area) {
  const form = area.closest("form");
  const input = area.querySelector("input[type=file]");
  const fileName = area.querySelector("[data-chosen]");
  // Unfold's script would write the name of the file into another field of the form.
  input.hasChangeListener = true;
  const handleDrag = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    area.classList.toggle("cad-drop-over", event.type === "dragover");
  };
  form.addEventListener("dragover", handleDrag);
  form.addEventListener("dragleave", handleDrag);
  form.addEventListener("drop", (event) => {
    handleDrag(event);
    if (!event.dataTransfer?.files.length) return;
    const typed = form.querySelector("input[name=kind][value=one]:checked");
    if (typed) form.querySelector("input[name=kind]").checked = true;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change"));
  });
  input.addEventListener("change", () => {
    const files = [...input.files];
    const isTooLarge = files.reduce((sum, file) => sum + file.size, 0) > Number(form.dataset.largest);
    input.setCustomValidity(isTooLarge ? form.dataset.tooLarge : "");
    fileName.className = isTooLarge ? "cad-error" : "cad-help";
    fileName.textContent = isTooLarge ? form.dataset.tooLarge : files.map(describeFile).join("; ");
    form.querySelector("[type=submit]").disabled = isTooLarge;
  });
}

function describeFile(file) {
  const kib = file.size / 1024;
  return `${file.name}, ${kib < 1024 ? `${Math.ceil(kib)} KiB` : `${(kib / 1024).toFixed(1)} MiB`}`;
}
