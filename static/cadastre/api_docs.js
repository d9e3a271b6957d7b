// The API documentation is dark where the admin site is: Swagger UI has a dark sheet, which a class switches on.
// Its field for a token takes `Bearer …`, too.
"use strict";

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const theme = JSON.parse(localStorage.getItem("_x_adminTheme") || '"auto"');
  const isDark = theme === "dark" || (theme === "auto" && systemIsDark.matches);
  document.documentElement.classList.toggle("dark-mode", isDark);
}

applyTheme();
systemIsDark.addEventListener("change", applyTheme);

// React reads the field after this; its own setter of `value` would hide that the value has changed.
const { set: setValue } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
addEventListener("input", ({ target }) => {
  const [scheme] = target.closest?.(".auth-container") ? target.value.match(/^\s*(bearer|token)\s+/i) ?? [] : [];
  if (scheme) setValue.call(target, target.value.slice(scheme.length));
}, true);
// Swagger UI leaves out levels of headings, and has parts outside of any landmark.
function nameParts() {
  document.querySelectorAll("h3.opblock-tag").forEach((tag) => tag.setAttribute("aria-level", "2"));
  document.querySelectorAll(".swagger-ui h4").forEach((title) => title.setAttribute("aria-level", "3"));
  for (const [selector, name] of [[".information-container", document.title], ["section.filter", "Filter"]]) {
    const part = document.querySelector(selector);
    part?.setAttribute("role", "region");
    part?.setAttribute("aria-label", name);
  }
}
new MutationObserver(nameParts).observe(document, { childList: true, subtree: true });
