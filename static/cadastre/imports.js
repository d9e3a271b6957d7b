// Imports: a file is dropped anywhere on its panel, work that is under way shows how far it is, a wave is printed.
"use strict";

const EVERY = 1000; // milliseconds between two looks at the progress

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-drop]").forEach(takeDrops);
  document.querySelectorAll("[data-progress]").forEach(follow);
  document.querySelectorAll("[data-print]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  });
});

function takeDrops(area) {
  const form = area.closest("form");
  const input = area.querySelector("input[type=file]");
  const chosen = area.querySelector("[data-chosen]");
  const over = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    area.classList.toggle("cad-drop-over", event.type === "dragover");
  };
  form.addEventListener("dragover", over);
  form.addEventListener("dragleave", over);
  form.addEventListener("drop", (event) => {
    over(event);
    if (!event.dataTransfer?.files.length) return;
    form.querySelector("input[name=how][value=file]").checked = true;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change"));
  });
  input.addEventListener("change", () => {
    const file = input.files[0];
    const large = file && file.size > Number(form.dataset.largest);
    input.setCustomValidity(large ? form.dataset.tooLarge : "");
    chosen.className = large ? "cad-error" : "cad-help";
    chosen.textContent = large ? form.dataset.tooLarge : file ? size(file) : "";
    form.querySelector("[type=submit]").disabled = Boolean(large);
  });
}

function size(file) {
  const kib = file.size / 1024;
  return `${file.name}, ${kib < 1024 ? `${Math.ceil(kib)} KiB` : `${(kib / 1024).toFixed(1)} MiB`}`;
}

function follow(part) {
  const bar = part.querySelector("progress");
  const percent = part.querySelector("[data-percent]");
  const text = part.querySelector("[data-text]");
  const look = async () => {
    const answer = await fetch(part.dataset.progress, { headers: { Accept: "application/json" } });
    // A login that has ended is answered by the login page: the page itself says so.
    if (!answer.ok || answer.redirected) return;
    const now = await answer.json();
    if (now.status !== part.dataset.status) {
      location.reload();
      return;
    }
    if (now.percent !== null) {
      bar.value = now.percent;
      percent.textContent = `${now.percent} %`;
    }
    if (text.textContent !== now.text) text.textContent = now.text;
    setTimeout(again, EVERY);
  };
  const again = () => look().catch(() => setTimeout(again, 5 * EVERY));
  setTimeout(again, EVERY);
}
