// On a phone, stacks the cells of each row of a table that is too wide: only its first column would be visible.
const PHONE = matchMedia("(max-width: 46em)");
const ROLES = {TABLE: "table", TBODY: "rowgroup", TR: "row", TD: "cell"};

function stack() {
  for (const table of document.querySelectorAll("article table.docutils")) {
    table.classList.remove("stacked");
    if (!PHONE.matches || table.scrollWidth <= table.parentElement.clientWidth) continue;
    table.classList.add("stacked");
    const labels = Array.from(table.querySelectorAll("thead th"), head => head.textContent.trim());
    for (const row of table.tBodies[0].rows) {
      Array.from(row.cells).forEach((cell, number) => { cell.dataset.label = labels[number] ?? ""; });
    }
    // `display: block` removes the meaning of the elements.
    for (const part of [table, ...table.querySelectorAll("tbody, tr, td")]) part.setAttribute("role", ROLES[part.tagName]);
  }
}

addEventListener("resize", stack);
addEventListener("DOMContentLoaded", stack);
addEventListener("load", stack);  // the fonts can change the width
