// Enhancements of pages that also work without a script.
import { startFilters } from "./filter.js";
import { startCounters, startPreviews } from "./fields.js";
import { start } from "./live.js";
import { showTimes } from "./times.js";
import { startTyped } from "./typed.js";

function copy(button) {
  const field = document.getElementById(button.dataset.copy);
  navigator.clipboard.writeText(field.value).then(
    () => { button.textContent = document.body.dataset.copied; },
    () => { field.select(); button.textContent = document.body.dataset.press; }
  );
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button) copy(button);
});
// A second click does not send a form again. Back shows the page as it was, and the form can be sent.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
  if (form.enctype !== "multipart/form-data") setTimeout(() => { delete form.dataset.sent; }, 10000); // if it was stopped
});
window.addEventListener("pageshow", () => {
  document.querySelectorAll("form[data-sent]").forEach((form) => { delete form.dataset.sent; });
});
document.querySelectorAll("[data-script]").forEach((element) => { element.hidden = false; });
document.querySelectorAll("[data-zone]").forEach((input) => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const isOther = input.value !== timeZone;
  input.value = timeZone;
  if (isOther && input.dataset.zone === "open") { // the page is drawn for one zone; Back leads to the page before it
    location.replace(`${input.form.action}?${new URLSearchParams(new FormData(input.form))}`);
  }
});
// On a page that shows a secret, a reload requests the key's page and does not send the form again.
const secretPage = document.querySelector("[data-reload]");
if (secretPage) history.replaceState(null, "", secretPage.dataset.reload);
window.addEventListener("load", () => setTimeout(() => { // for browsers that ignore `autofocus` on a section
  if (document.activeElement === document.body) document.getElementById("problems")?.focus();
}, 100));
// A reload or a bookmark does not repeat what the page reports.
const here = new URL(location.href);
if (here.searchParams.has("notice")) {
  here.searchParams.delete("notice");
  history.replaceState(null, "", here);
}
showTimes(document);
setInterval(() => showTimes(document), 30000);
startTyped();
start();
startFilters();
startCounters();
startPreviews();
