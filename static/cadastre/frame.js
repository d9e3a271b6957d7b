// Keyboard and screen reader support that the frame of django-unfold lacks, and fields that suggest
// the names that contain what is typed.
"use strict";

// Pages show times in the browser's time zone, unless the user has chosen another one.
const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (timeZone) document.cookie = `time_zone=${timeZone}; path=/admin/; max-age=31536000; SameSite=Lax`;

window.gettext ??= (text) => text; // for pages without the message catalogue, such as the login page

document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("#main")?.setAttribute("role", "main");
  document.querySelector("#nav-sidebar-inner")?.setAttribute("aria-label", gettext("Menu")); // tabs are a navigation, too
  const content = document.querySelector("#nav-sidebar") && document.querySelector("#content");
  if (content) {
    content.setAttribute("tabindex", "-1");
    addSkipLink();
  }
  // Elements that open something and that only a mouse can reach: filters, user menu.
  document.querySelectorAll("[x-on\\:click]:not(button, input, [href])").forEach(makeButton);
  hideIcons(document);
  document.body.addEventListener("htmx:load", (event) => hideIcons(event.target)); // results of the palette
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

// Ctrl-K opens the palette from anywhere. `/` goes to the search field of the list, else to Find, unless somebody types.
document.addEventListener("keydown", (event) => {
  const command = event.ctrlKey || event.metaKey;
  if (event.altKey || event.key !== (command ? "k" : "/")) return;
  if (!command && event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  const search = document.querySelector("#searchbar, #find");
  const find = document.querySelector("#cad-search");
  if (command) window.dispatchEvent(new CustomEvent("opencommand"));
  else if (search) search.select();
  else if (find) location.assign(find.href);
});

// The palette says why it has no results: the session has ended.
document.addEventListener("htmx:afterRequest", ({ detail, target }) => {
  if (target.id !== "search-input-command" || !detail.xhr.responseURL.includes("/login/")) return;
  const link = document.createElement("a");
  link.href = location.pathname + location.search;
  link.className = "cad-link";
  link.textContent = gettext("Session expired; sign in to continue");
  const note = document.createElement("p");
  note.className = "cad-note";
  note.append(link);
  document.querySelector("#command-results").replaceChildren();
  document.querySelector("#command-results-note").replaceChildren(note);
});

// A touch screen has no hover: a tap on "3 hours ago" shows the exact time, and another one the age.
document.addEventListener("click", (event) => {
  const time = event.target.closest("time[title]");
  if (time && !time.closest("a")) [time.textContent, time.title] = [time.title, time.textContent];
});

// The tab that has what the address names behind "#"; unfold's getCurrentTab knows its forms only.
function tabOfFragment() {
  const target = document.getElementById(location.hash.slice(1));
  const tab = target?.closest(".cad-tab");
  if (tab && tab !== target) setTimeout(() => target.scrollIntoView()); // when the tab is shown
  return tab?.id ?? "general";
}

function markTab(name) {
  const tabs = document.querySelector("#tabs-items");
  tabs?.setAttribute("aria-label", gettext("Sections of this page"));
  tabs?.querySelectorAll("a").forEach((link) => {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
}

// The menus of lists and objects: Escape and a click elsewhere close a menu.
document.addEventListener("click", (event) => {
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

function hideIcons(part) {
  part.querySelectorAll(".material-symbols-outlined").forEach(hideIcon);
}

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
