// The API documentation is dark where the admin site is: Swagger UI has a dark sheet, which a class switches on.
"use strict";

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  const theme = JSON.parse(localStorage.getItem("_x_adminTheme") || '"auto"');
  const isDark = theme === "dark" || (theme === "auto" && systemIsDark.matches);
  document.documentElement.classList.toggle("dark-mode", isDark);
}

applyTheme();
systemIsDark.addEventListener("change", applyTheme);
