// Fill in again what was typed: before a session ended (the page has it), or before another language was selected.
const KEPT = "typed"; // in this tab only, until the page is shown again
const OTHER = new Set(["hidden", "file", "password", "submit", "button"]);
const isTyped = (field) => field.name && field.name !== "sure" && !OTHER.has(field.type);

function fill(action, entries) {
  const form = [...document.forms].find((one) => !one.hasAttribute("data-kept") && one.getAttribute("action") === action);
  if (!form) return;
  const left = [...entries];
  const take = (name, value) => {
    const at = left.findIndex((one) => one[0] === name && (value === undefined || one[1] === value));
    return at < 0 ? undefined : left.splice(at, 1)[0][1];
  };
  [...form.elements].filter(isTyped).forEach((field) => {
    if (field.type === "checkbox" || field.type === "radio") field.checked = take(field.name, field.value) !== undefined;
    else {
      const value = take(field.name);
      const isOffered = field.type !== "select-one" || [...field.options].some((one) => one.value === value && !one.disabled);
      if (value !== undefined && isOffered) field.value = value;
    }
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

const entriesOf = (form, isWanted) => [...form.elements].filter(isWanted)
  .filter((field) => field.checked || !["checkbox", "radio"].includes(field.type)).map((field) => [field.name, field.value]);

export function startTyped() {
  const here = location.pathname + location.search;
  const again = document.querySelector("form[data-kept]");
  if (again) fill(again.getAttribute("action"), entriesOf(again, (field) => field.name));
  const changed = new Set();
  const [page, forms] = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
  sessionStorage.removeItem(KEPT);
  if (page === here) forms.forEach(([action, entries]) => fill(action, entries));
  document.addEventListener("input", (event) => {
    if (event.target.form?.method === "post") changed.add(event.target.form);
  });
  if (page === here) document.querySelectorAll("form[method=post]").forEach((form) => {
    if (forms.some(([action]) => action === form.getAttribute("action"))) changed.add(form);
  });
  document.querySelector('form[action="/dashboard/language"]')?.addEventListener("submit", () => {
    const typed = [...changed].map((form) => [form.getAttribute("action"), entriesOf(form, isTyped)]);
    if (typed.length) sessionStorage.setItem(KEPT, JSON.stringify([here, typed]));
  });
}
