// What django-unfold's frame lacks for the keyboard and for screen readers.
"use strict";

window.gettext ??= (text) => text; // pages without Django's catalogue, such as the login

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#main")?.setAttribute("role", "main");
  const content = document.querySelector("#nav-sidebar") && document.querySelector("#content");
  if (content) {
    content.setAttribute("tabindex", "-1");
    skipLink();
  }
  // Openers that only a mouse can reach: the filters, the user's menu.
  document.querySelectorAll("[x-on\\:click]:not(button, input, [href])").forEach(asButton);
  document.querySelectorAll(".material-symbols-outlined").forEach(silent);
});

function skipLink() {
  const link = document.createElement("a");
  link.href = "#content";
  link.className = "cad-skip";
  link.textContent = gettext("Skip to the content");
  document.body.prepend(link);
}

function asButton(opener) {
  opener.setAttribute("role", "button");
  opener.setAttribute("tabindex", "0");
  opener.addEventListener("keydown", (event) => {
    if (event.target !== opener || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    opener.click();
  });
}

// An icon is a word in a font of icons; a link of nothing else keeps a name.
const names = () => ({ add: gettext("Add"), close: gettext("Close"), search: gettext("Search") });

function silent(icon) {
  const word = icon.textContent.trim();
  const around = icon.closest("a, button, [role=button]");
  if (around && !around.hasAttribute("aria-label") && around.textContent.trim() === word) {
    const name = around.getAttribute("title") || names()[word];
    if (!name) return;
    around.setAttribute("aria-label", name);
  }
  icon.setAttribute("aria-hidden", "true");
}
