// Keyboard and screen reader support that the frame of django-unfold lacks, and fields that suggest
// the names that contain what is typed.
"use strict";

window.gettext ??= (text) => text; // for pages without the message catalogue, such as the login page

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#main")?.setAttribute("role", "main");
  const content = document.querySelector("#nav-sidebar") && document.querySelector("#content");
  if (content) {
    content.setAttribute("tabindex", "-1");
    addSkipLink();
  }
  // Elements that open something and that only a mouse can reach: filters, user menu.
  document.querySelectorAll("[x-on\\:click]:not(button, input, [href])").forEach(makeButton);
  document.querySelectorAll(".material-symbols-outlined").forEach(hideIcon);
  document.querySelectorAll("input[data-names]").forEach(suggestNames);
  focusAnswer();
  document.addEventListener("alpine:initialized", focusAnswer); // the frame is hidden before
});

// What a form was answered with: who changed the row meanwhile, the first invalid field, a warning, or a preview.
const ANSWERS = ["#conflicts", "[aria-invalid=true]:not([type=hidden])", "#overlaps", "#preview"];

function focusAnswer() {
  ANSWERS.map((answer) => document.querySelector(`#content ${answer}`)).find(Boolean)?.focus();
}

// The icon of Django's choice of several has a name, which needs a role.
window.addEventListener("load", () => setTimeout(() => {
  document.querySelectorAll(".search-label-icon").forEach((icon) => icon.setAttribute("role", "img"));
}));

// A page is hidden until Alpine has started: it is shown where that fails, too, without the drawer of filters.
window.addEventListener("load", () => {
  if (!document.documentElement.hasAttribute("x-cloak")) return;
  document.documentElement.removeAttribute("x-cloak");
  document.querySelector("#changelist-filter")?.remove();
});

// `/` goes to the search field, unless somebody types into another one; Ctrl-K goes there from anywhere.
document.addEventListener("keydown", (event) => {
  const command = event.ctrlKey || event.metaKey;
  if (event.altKey || event.key !== (command ? "k" : "/")) return;
  if (!command && event.target.closest("input, textarea, select, [contenteditable]")) return;
  const search = document.querySelector("#cad-search, #find");
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
});

// A touch screen has no hover: a tap on "3 hours ago" shows the exact time, and another one the age.
document.addEventListener("click", (event) => {
  const time = event.target.closest("time[title]");
  if (time && !time.closest("a")) [time.textContent, time.title] = [time.title, time.textContent];
});

function addSkipLink() {
  const link = document.createElement("a");
  link.href = "#content";
  link.className = "cad-skip";
  link.textContent = gettext("Skip to the content");
  document.body.prepend(link);
}

function makeButton(opener) {
  opener.setAttribute("role", "button");
  opener.setAttribute("tabindex", "0");
  opener.addEventListener("keydown", (event) => {
    if (event.target !== opener || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    opener.click();
  });
}

// Labels for links that contain only an icon (the text of an icon is its name in the icon font).
const iconLabels = () => ({ add: gettext("Add"), close: gettext("Close"), search: gettext("Search") });

function hideIcon(icon) {
  const word = icon.textContent.trim();
  const parent = icon.closest("a, button, [role=button]");
  if (parent && !parent.hasAttribute("aria-label") && parent.textContent.trim() === word) {
    const label = parent.getAttribute("title") || iconLabels()[word];
    if (!label) return;
    parent.setAttribute("aria-label", label);
  }
  icon.setAttribute("aria-hidden", "true");
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
