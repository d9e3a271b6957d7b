// Adds a copy button to each manifest and command.
"use strict";

window.gettext ??= (text) => text; // for pages without the message catalogue, such as the login page

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("pre.cad-pre").forEach(addCopyButton);
});

function addCopyButton(block) {
  const frame = document.createElement("div");
  frame.className = "cad-copy";
  block.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cad-button cad-button-plain cad-copy-button";
  button.textContent = gettext("Copy");
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(block)) ? gettext("Copied") : gettext("Selected: press Ctrl+C");
  });
  // Before the block in the tab order; the style shows the button at its right.
  frame.append(button, block);
}

async function copyText(block) {
  try {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  } catch {
    // Browsers have no clipboard API over plain HTTP; a selection can still be copied.
    getSelection().selectAllChildren(block);
    return document.execCommand("copy");
  }
}
