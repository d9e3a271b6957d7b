// Parts of a page that renew themselves (pools/platform/admin/live.py): htmx asks for them while the tab is visible,
// unless the button *Live* is off.
"use strict";

const OFF = "cadastre.live.off"; // in the browser's storage: the choice holds for all pages
const shownParts = new Map(); // what was last received, by the id of the part
let shownTag = ""; // the ETag of the last answer

// The condition of the button's hx-trigger.
function isLive() {
  return document.visibilityState === "visible" && !localStorage.getItem(OFF);
}

document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector("#cad-live");
  if (!button) return;
  const show = () => button.setAttribute("aria-pressed", String(!localStorage.getItem(OFF)));
  button.hidden = false;
  show();
  window.addEventListener("storage", show); // another tab
  button.addEventListener("click", () => {
    if (localStorage.getItem(OFF)) localStorage.removeItem(OFF);
    else localStorage.setItem(OFF, "1");
    show();
  });
});

// A page without live parts asks for those of the frame alone.
document.addEventListener("htmx:configRequest", ({ detail, target }) => {
  if (target.id !== "cad-live") return;
  if (document.querySelector("#content [data-live]")) detail.path = location.pathname + location.search;
  if (shownTag) detail.headers["If-None-Match"] = shownTag;
});

// Only what changed is replaced, and nothing that somebody uses: that is asked for again.
document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
  const part = detail.target;
  if (!part.matches("[data-live]")) return;
  const html = detail.fragment.innerHTML;
  detail.shouldSwap = shownParts.get(part.id) !== html && !isInUse(part);
  if (detail.shouldSwap) shownParts.set(part.id, html);
});

document.addEventListener("htmx:afterRequest", ({ detail, target }) => {
  if (target.id !== "cad-live" || detail.xhr.status !== 200) return;
  const path = new URL(detail.xhr.responseURL).pathname;
  if (path.endsWith("/login/")) target.setAttribute("aria-pressed", "false"); // the session has ended
  const isPage = path === location.pathname; // no sign-in, and not the frame alone
  const parts = [...document.querySelectorAll("[data-live]")];
  const isGone = (part) => part.dataset.live === "reload" && !detail.xhr.response.includes(`id="${part.id}"`);
  if (isPage && parts.some(isGone)) location.reload();
  shownTag = parts.some(isInUse) ? "" : detail.xhr.getResponseHeader("ETag") ?? "";
});

// A field or link with the focus, selected text, something unfolded, ticked or typed.
function isInUse(part) {
  const selection = getSelection();
  const fields = [...part.querySelectorAll("input, select, textarea")];
  return (
    part.contains(document.activeElement) ||
    (!selection.isCollapsed && part.contains(selection.anchorNode)) ||
    Boolean(part.querySelector("details[open]")) ||
    fields.some((field) => field.checked !== field.defaultChecked || field.value !== field.defaultValue)
  );
}
