// Forms: new CIDR rows, errors that end when their field is corrected, the next free address, and what was typed
// when a session expired.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-add-cidr]").forEach((button) => {
    button.addEventListener("click", () => addRow().querySelector("input").focus());
  });
  document.querySelectorAll("input[data-free]").forEach(addFreeButton);
  if (document.querySelector("#login-form")) keepTypedValues();
  else if (document.querySelector("#nav-sidebar")) restoreTypedValues();
});

// --- errors ---------------------------------------------------------------------------------------

// An error of the last try says nothing about a value that was changed since.
for (const type of ["input", "change"]) {
  document.addEventListener(type, (event) => {
    const field = event.target.closest(".errors");
    if (!field) return;
    field.classList.remove("errors");
    field.querySelectorAll(".cad-error").forEach((error) => error.remove());
    event.target.removeAttribute("aria-invalid");
    document.querySelector(`#errors a[href="#${CSS.escape(event.target.id)}"]`)?.closest("li").remove();
    if (!document.querySelector("#errors li")) document.querySelector("#errors")?.remove();
  });
}

// --- rows -----------------------------------------------------------------------------------------

function addRow() {
  const list = document.querySelector(".cad-cidrs");
  const total = document.querySelector(`#id_${list.dataset.prefix}-TOTAL_FORMS`);
  const row = document.querySelector("#cidr-row").content.cloneNode(true);
  row.querySelectorAll("[name], [id], [for]").forEach((part) => {
    for (const attribute of ["name", "id", "for"]) {
      const value = part.getAttribute(attribute);
      if (value) part.setAttribute(attribute, value.replace("__prefix__", total.value));
    }
  });
  list.append(row);
  htmx.process(list.lastElementChild);
  total.value = Number(total.value) + 1;
  return list.lastElementChild;
}

// --- the next free address ------------------------------------------------------------------------

// `data-free` answers with the next free addresses of a pool, or of the network or the IPPool that the form has.
function addFreeButton(input) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "cad-button cad-button-plain cad-free";
  button.textContent = gettext("Next free address");
  const message = document.createElement("p");
  message.className = "cad-warned";
  message.setAttribute("aria-live", "polite");
  input.after(button, message);
  button.addEventListener("click", async () => {
    const url = new URL(input.dataset.free, location.href);
    for (const name of ["network", "ippool", "family"]) {
      const value = input.form.elements[name]?.value;
      if (value) url.searchParams.set(name, value);
    }
    const response = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
    if (!response?.headers.get("Content-Type").includes("json")) {
      message.textContent = gettext("The server does not answer. Try again.");
      return;
    }
    const answer = await response.json();
    message.textContent = answer.problem || "";
    if (answer.problem) return;
    input.value = answer.addresses.join(", ");
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.focus();
  });
}

// An offered CIDR takes the place of what was typed; in a list of lines, of those of its family.
document.addEventListener("click", (event) => {
  const cidr = event.target.closest("[data-fill]")?.dataset.fill;
  if (!cidr) return;
  const input = event.target.closest(".cad-control, .cad-cidr-parts > div").querySelector(".cad-mono-input");
  const isOther = (line) => line.trim() && line.includes(":") !== cidr.includes(":");
  const others = input.localName === "textarea" ? input.value.split("\n").filter(isOther) : [];
  input.value = [...others, cidr].join("\n");
  input.dispatchEvent(new Event("input", { bubbles: true }));
  input.focus();
});

// --- what was typed when the session expired ------------------------------------------------------

const TYPED = "cadastre-typed";
const SIGNED_IN = "cadastre-signed-in";
const SECRET = /password|secret|token|kubeconfig|credential/i;
const HIDDEN = /(^|-)(version|TOTAL_FORMS)$/; // who saved meanwhile is still noticed, and new rows come back
let typedForm = null;

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.method === "post" && form.closest("#content")) typedForm = form;
});

document.addEventListener("submit", (event) => {
  if (event.target.getAttribute("action")?.endsWith("/logout/")) sessionStorage.removeItem(SIGNED_IN);
});

// A page that is left, by its button or otherwise, may lead to the sign-in.
addEventListener("pagehide", () => {
  if (!typedForm || !sessionStorage.getItem(SIGNED_IN)) return;
  const values = [...typedForm.elements].filter(isKept).map((field) => {
    const chosen = field.selectedOptions && [...field.selectedOptions].map((option) => option.value);
    return { name: field.name, value: field.value, checked: field.checked, chosen };
  });
  const index = [...document.forms].indexOf(typedForm);
  const sentTo = new URL(typedForm.getAttribute("action") || "", location.href);
  sessionStorage.setItem(TYPED, JSON.stringify({ pages: [location, sentTo].map(pathOf), index, values }));
});

function pathOf(url) {
  return url.pathname + url.search;
}

function isKept(field) {
  if (!field.name || SECRET.test(field.name) || field.closest("[data-secret]")) return false;
  if (field.type === "hidden") return HIDDEN.test(field.name);
  return !["file", "password", "submit", "button", "fieldset"].includes(field.type);
}

function readTypedValues() {
  const typed = JSON.parse(sessionStorage.getItem(TYPED) || "null");
  sessionStorage.removeItem(TYPED);
  return typed;
}

// The sign-in page: it leads to the page that the form was on, or to that which it was sent to.
function keepTypedValues() {
  const typed = readTypedValues();
  const next = new URLSearchParams(location.search).get("next");
  if (next && sessionStorage.getItem(SIGNED_IN)) document.querySelector("#session-expired").hidden = false;
  if (typed?.pages.includes(next)) sessionStorage.setItem(TYPED, JSON.stringify({ ...typed, signedOut: true }));
}

// A part of an object's page (its details, a note) has a page of its own, with the same fields.
function findTypedForm({ pages: [page, sentTo], index, values }) {
  if (pathOf(location) === page) return document.forms[index];
  const hasAll = (form) => values.every(({ name }) => form.elements[name]);
  return pathOf(location) === sentTo && [...document.querySelectorAll("#content form[method=post]")].find(hasAll);
}

function restoreTypedValues() {
  const typed = readTypedValues();
  sessionStorage.setItem(SIGNED_IN, "1");
  const form = typed?.signedOut && findTypedForm(typed);
  if (!form) return;
  const total = typed.values.find(({ name }) => name.endsWith("-TOTAL_FORMS"));
  while (total && Number(form.elements[total.name].value) < Number(total.value)) addRow();
  for (const { name, value, checked, chosen } of typed.values) {
    for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
      if (chosen) for (const option of field.options) option.selected = chosen.includes(option.value);
      else if (!["checkbox", "radio"].includes(field.type)) field.value = value;
      else if (field.value === value) field.checked = checked;
    }
  }
  typedForm = form;
  const note = document.createElement("p");
  note.className = "cad-note";
  note.setAttribute("role", "status");
  note.textContent = gettext("Your session had expired. What you typed is in the form again, and not saved yet.");
  form.prepend(note);
}
