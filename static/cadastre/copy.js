// A button beside each manifest and command that puts it into the clipboard.
"use strict";

window.gettext ??= (text) => text; // pages without Django's catalogue, such as the login

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("pre.cad-pre").forEach(copyable);
});

function copyable(block) {
  const frame = document.createElement("div");
  frame.className = "cad-copy";
  block.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cad-button cad-button-plain cad-copy-button";
  button.textContent = gettext("Copy");
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = (await copied(block)) ? gettext("Copied") : gettext("Selected: press Ctrl+C");
  });
  // Before the block, so that the keyboard comes to it first; it stands at its right.
  frame.append(button, block);
}

async function copied(block) {
  try {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  } catch {
    // Over plain HTTP a browser has no clipboard for pages; what is selected can still be copied.
    getSelection().selectAllChildren(block);
    return document.execCommand("copy");
  }
}
