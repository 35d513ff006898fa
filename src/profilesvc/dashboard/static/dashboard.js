// What a script adds to pages that work without one.
import { start } from "./live.js";
import { showTimes } from "./times.js";

function copy(button) {
  const field = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(field.value).then(
    () => { button.textContent = "Copied"; },
    () => { field.select(); button.textContent = "Press Ctrl-C"; }
  );
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});
document.querySelectorAll("[data-script]").forEach((element) => { element.hidden = false; });
// The answer to a form that shows a secret: a reload asks for the page, and does not send the form again.
const once = document.querySelector("[data-reload]");
if (once) history.replaceState(null, "", once.dataset.reload);
window.addEventListener("load", () => setTimeout(() => { // for browsers that focus only inputs by themselves
  if (document.activeElement === document.body) document.getElementById("problems")?.focus();
}, 100));
showTimes(document);
setInterval(() => showTimes(document), 30000);
start();
