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
