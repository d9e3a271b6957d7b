// Warnings about a MAC entry while somebody types: what is wrong, and who names the same values.
"use strict";

const PAUSE = 300; // milliseconds without a key

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("[data-check]").forEach((form) => {
    const rows = form.querySelectorAll("[data-entry-row]");
    if (rows.length) rows.forEach((row) => watch(row, form));
    else watch(form, form);
  });
});

// `part` is a form, or one row of a form; its fields end in the names that are asked for.
function watch(part, form) {
  let waiting = 0;
  let asked = 0;
  const field = (name) => part.querySelector(`[name="${name}"], [name$="-${name}"]`);
  const ask = async () => {
    const query = new URLSearchParams({
      ippool: field("ippool")?.value || form.dataset.ippool || "",
      entry: part.dataset.entry || part.dataset.entryRow || "",
      where: field("where")?.value || "",
    });
    for (const name of ["mac", "ips", "vm", "namespace"]) query.set(name, field(name)?.value || "");
    asked += 1;
    const mine = asked;
    const answer = await fetch(`${form.dataset.check}?${query}`, { headers: { Accept: "application/json" } });
    // A later question is the one that counts.
    if (answer.ok && mine === asked) tell(part, await answer.json());
  };
  part.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => ask().catch(() => tell(part, {})), PAUSE);
  });
}

function tell(part, told) {
  const place = part.querySelector("[data-told]");
  place.replaceChildren();
  for (const one of told.problems || []) add(place, "cad-error", [one.message]);
  for (const one of told.duplicates || []) {
    const begin = one.note ? gettext("%(value)s lies in") : gettext("▲ %(value)s is a duplicate: also");
    const parts = one.occurrences.flatMap((occurrence, index) => [index ? ", " : `${interpolate(begin, one, true)} `, occurrence]);
    add(place, one.note ? "cad-help" : "cad-warned", parts);
  }
  for (const text of told.warnings || []) add(place, "cad-warned", [`▲ ${text}`]);
}

function add(place, kind, parts) {
  const line = document.createElement("p");
  line.className = kind;
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
  place.append(line);
}
