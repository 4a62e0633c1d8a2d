// What the page to search from can do without this file, it does. This adds keys and buttons.
"use strict";

const box = document.getElementById("q");

// Ctrl-K leads to the box.
document.addEventListener("keydown", (event) => {
  if (!box || event.key !== "k" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  box.focus();
  box.select();
});

// What is being typed is completed in a list, which the browser shows and its keys reach.
if (box?.dataset.suggestions) {
  const list = Object.assign(document.createElement("datalist"), { id: "suggestions" });
  box.after(list);
  box.setAttribute("list", list.id);
  let waiting, asking;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      asking?.abort();
      asking = new AbortController();
      const typed = box.value;
      if (!typed.trim() || [...list.options].some((option) => option.value === typed)) return;
      const repository = document.querySelector("#search [name=in]")?.value ?? box.dataset.repository;
      const question = new URLSearchParams({ in: repository, q: typed });
      try {
        const answer = await fetch(`${box.dataset.suggestions}?${question}`, { signal: asking.signal, redirect: "error" });
        if (!answer.ok) return;
        const { completions } = await answer.json();
        list.replaceChildren(...completions.map(({ text }) => Object.assign(document.createElement("option"), { value: text })));
      } catch { /* the box does without */ }
    }, 150);
  });
}

// Among the hits, "j" and "k" lead from one to the next; in a text, from mark to mark.
for (const [where, what] of [[".hits", "h3 a"], [".text", "mark"]]) {
  const list = document.querySelector(where);
  if (!list) continue;
  const stops = [...list.querySelectorAll(what)];
  list.addEventListener("keydown", (event) => {
    const step = { j: 1, k: -1 }[event.key];
    if (!step || !stops.length || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) return;
    const stop = stops[Math.min(Math.max(stops.indexOf(document.activeElement) + step, 0), stops.length - 1)];
    if (stop.tagName === "MARK") stop.tabIndex = -1;
    stop.focus();
    stop.scrollIntoView({ block: "nearest" });
  });
}

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
