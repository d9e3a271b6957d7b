// Adds a copy button to each manifest and command, and to each address and MAC.
"use strict";

window.gettext ??= (text) => text; // for pages without the message catalogue, such as the login page

const ADDRESS = /^(?=.*[.:])[0-9a-f.:]+(\/\d+)?$/i; // IPv4, IPv6, CIDR, MAC

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("pre.cad-pre").forEach(addCopyButton);
  document.querySelectorAll("#content .cad-mono").forEach(addAddressButton);
});

function addCopyButton(block) {
  const frame = document.createElement("div");
  frame.className = "cad-copy";
  block.replaceWith(frame);
  const button = copyButton(block, block.textContent, "cad-button cad-button-plain cad-copy-button");
  button.textContent = gettext("Copy");
  // Before the block in the tab order; the style shows the button at its right.
  frame.append(button, block);
}

// The button is seen on hover and focus, in cells over what is beside the address: see the style.
function addAddressButton(address) {
  const text = address.textContent.trim();
  if (!ADDRESS.test(text) || address.closest("button, summary, pre")) return;
  const button = copyButton(address, text, "cad-copy-address");
  button.setAttribute("aria-label", `${gettext("Copy")} ${text}`);
  if (address.matches("td, th, dd")) address.append(button);
  else address.after(button);
}

function copyButton(source, text, className) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = className;
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    button.textContent = (await copyText(source, text)) ? gettext("Copied") : gettext("Selected: press Ctrl+C");
  });
  button.addEventListener("blur", () => {
    if (button.hasAttribute("aria-label")) button.textContent = "";
  });
  return button;
}

async function copyText(source, text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no clipboard API over plain HTTP; a selection can still be copied.
    getSelection().selectAllChildren(source);
    return document.execCommand("copy");
  }
}
