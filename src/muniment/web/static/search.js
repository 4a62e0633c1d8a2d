// What the page to search from can do without this file, it does. This adds keys and buttons.
"use strict";

const box = document.getElementById("q");
const writes = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

// "/" leads to the box; "j" and "k" lead from hit to hit, on a page of text from mark to mark.
const stops = [...document.querySelectorAll(".hits h3 a, .sheet mark")];
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || writes(event.target)) return;
  if (event.key === "/" && box) {
    event.preventDefault();
    box.focus();
    box.select();
  } else if ((event.key === "j" || event.key === "k") && stops.length) {
    const at = stops.indexOf(document.activeElement);
    const next = event.key === "j" ? at + 1 : at < 0 ? stops.length - 1 : at - 1;
    const stop = stops[Math.min(Math.max(next, 0), stops.length - 1)];
    if (stop.tagName === "MARK") stop.tabIndex = -1;
    stop.focus();
    stop.scrollIntoView({ block: "center" });
  }
});

// An address without empty parameters is shorter to share.
const form = document.getElementById("search");
form?.addEventListener("submit", () => {
  for (const field of form.elements) if (field.name !== "q" && field.value === "") field.disabled = true;
});
window.addEventListener("pageshow", () => {
  for (const field of form?.elements ?? []) field.disabled = false;
});

// Another order needs no further press of a button where a script runs.
document.getElementById("sort")?.addEventListener("change", () => form?.requestSubmit());

for (const code of document.querySelectorAll(".more pre")) {
  if (!navigator.clipboard) break;
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "quiet copy",
    textContent: "Copy",
  });
  button.setAttribute("aria-describedby", code.getAttribute("aria-labelledby"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  });
  code.before(button);
}
