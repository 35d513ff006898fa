// Search and filter a list while the user types. The address of the page follows, so that a bookmark and Back show the
// same list. Without a script, the button sends the form.
import { show } from "./live.js";

const PAUSE = 200;

function apply(form) {
  const values = [...new FormData(form)].filter(([, value]) => value.trim() !== "");
  const query = values.length ? `?${new URLSearchParams(values)}` : "";
  history.replaceState(null, "", new URL(form.action).pathname + query);
  show(form.dataset.filter, form.dataset.live + query);
}

// Show the choices that a search finds, with the one that is selected.
function find(input) {
  const selected = input.form.querySelector(`#${input.dataset.find} input:checked`);
  const query = new URLSearchParams({ find: input.value, location: selected?.value ?? "" });
  show(input.dataset.find, `${input.dataset.live}?${query}`);
}

export function startFilters() {
  document.querySelectorAll("input[data-find]").forEach((input) => {
    let timer;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(find, PAUSE, input);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") event.preventDefault(); // the search has happened, and the form is not complete
    });
  });
  document.querySelectorAll("form[data-filter]").forEach((form) => {
    let timer;
    form.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(apply, PAUSE, form);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      apply(form);
    });
  });
}
