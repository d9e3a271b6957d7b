// Live validation of MAC entry forms: problems, duplicates and warnings.
"use strict";

const PAUSE = 300; // milliseconds without input before the check

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-check]").forEach((form) => {
    const rows = form.querySelectorAll("[data-entry-row]");
    if (rows.length) rows.forEach((row) => watch(row, form));
    else watch(form, form);
  });
});

// `part` is a form, or one row of a form with a prefix before the field names.
function watch(part, form) {
  let timer = 0;
  let lastRequest = 0;
  const field = (name) => part.querySelector(`[name="${name}"], [name$="-${name}"]`);
  const check = async () => {
    const query = new URLSearchParams({
      ippool: field("ippool")?.value || form.dataset.ippool || "",
      entry: part.dataset.entry || part.dataset.entryRow || "",
    });
    for (const name of ["mac", "ips", "vm", "namespace"]) query.set(name, field(name)?.value || "");
    lastRequest += 1;
    const request = lastRequest;
    const response = await fetch(`${form.dataset.check}?${query}`, { headers: { Accept: "application/json" } });
    // Ignore the response if a newer request was sent.
    if (response.ok && request === lastRequest) showResult(part, await response.json());
  };
  part.addEventListener("input", () => {
    part.querySelectorAll(".cad-row-told > td > .cad-error").forEach((error) => error.remove()); // of the last try
    clearTimeout(timer);
    timer = setTimeout(() => check().catch(() => showResult(part, {})), PAUSE);
  });
}

function showResult(part, result) {
  const output = part.querySelector("[data-told]");
  output.replaceChildren();
  for (const problem of result.problems || []) addLine(output, "cad-error", [problem.message]);
  for (const duplicate of result.duplicates || []) {
    const begin = duplicate.note ? gettext("%(value)s lies in") : gettext("▲ %(value)s is a duplicate: also");
    const parts = duplicate.occurrences.flatMap((occurrence, index) => [index ? ", " : `${interpolate(begin, duplicate, true)} `, occurrence]);
    addLine(output, duplicate.note ? "cad-help" : "cad-warned", parts);
  }
  for (const text of result.warnings || []) addLine(output, "cad-warned", [`▲ ${text}`]);
}

function addLine(output, style, parts) {
  const line = document.createElement("p");
  line.className = style;
  for (const part of parts) {
    if (typeof part === "string") line.append(part);
    else if (!part.url) line.append(part.text);
    else {
      const link = document.createElement("a");
      link.className = "cad-link";
      link.href = part.url;
      link.textContent = part.text;
      line.append(link);
    }
  }
  output.append(line);
}
