// Opens levels of the address plan below their row, and loads more rows in place.
"use strict";

document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-plan-open], [data-plan-more]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if ("planMore" in link.dataset) {
    await replaceWithRows(link);
  } else if (link.getAttribute("aria-expanded") === "true") {
    closeLevel(link);
  } else {
    await openLevel(link);
  }
});

async function openLevel(link) {
  const rows = await loadRows(link, depthOf(link) + 1);
  if (!rows) return;
  link.setAttribute("aria-expanded", "true");
  link.closest("tr").after(...rows);
}

function closeLevel(link) {
  const depth = depthOf(link);
  link.setAttribute("aria-expanded", "false");
  let row = link.closest("tr").nextElementSibling;
  while (row && Number(row.dataset.depth) > depth) {
    const following = row.nextElementSibling;
    row.remove();
    row = following;
  }
}

async function replaceWithRows(link) {
  const rows = await loadRows(link, depthOf(link));
  if (rows) link.closest("tr").replaceWith(...rows);
}

const depthOf = (link) => Number(link.closest("tr").dataset.depth);

// The rows of a level; without an answer the browser follows the link.
async function loadRows(link, depth) {
  const url = new URL(link.href);
  url.searchParams.set("rows", depth);
  const answer = await fetch(url).catch(() => null);
  if (!answer?.ok || answer.redirected) {
    location.assign(link.href);
    return null;
  }
  const body = document.createElement("tbody");
  body.innerHTML = await answer.text();
  return [...body.children];
}
