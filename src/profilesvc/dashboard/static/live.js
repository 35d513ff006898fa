// Parts of a page that keep themselves up to date (data-poll), and a form that is checked while it is filled in
// (data-check). Without a script the same pages work by reloading and by sending the form.
import { morph } from "./morph.js";
import { showTimes } from "./times.js";

const EVERY = 3000;
const LONGEST = 30000;
const PATIENCE = 10000;
const notice = document.getElementById("connection");
const timers = new Map();
const asking = new Set();
let failures = 0;
let ended = false;

function isDirty() {
  return [...document.querySelectorAll("input, textarea")].some((input) =>
    input.type === "checkbox" || input.type === "radio" ? input.checked !== input.defaultChecked
      : input.value !== input.defaultValue);
}

function goTo(path) {
  ended = true;
  if (isDirty()) notice.textContent = "Your session has ended. Copy what you typed, then reload the page to sign in.";
  else window.location.assign(path);
}

// The part of a page, or null when there is nothing new.
async function ask(url, options = {}) {
  const headers = { "X-Fragment": "1" };
  const response = await fetch(url, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  const elsewhere = response.headers.get("X-Go-To");
  if (elsewhere !== null) {
    goTo(elsewhere);
    return null;
  }
  if (response.status === 204) return null;
  if (!response.ok) throw new Error(`status ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html").body.firstElementChild;
}

function isBack() {
  failures = 0;
  if (!ended) notice.textContent = "";
}

function isLost() {
  failures += 1;
  notice.textContent = "The connection to the service is lost, so this page may be out of date. Trying again.";
}

function schedule(id) {
  clearTimeout(timers.get(id));
  if (!ended) timers.set(id, setTimeout(poll, Math.min(EVERY * 2 ** failures, LONGEST), id));
}

async function poll(id) {
  const element = document.getElementById(id);
  if (document.hidden || asking.has(id) || !element?.dataset.poll) return;
  asking.add(id);
  try {
    const next = await ask(element.dataset.poll);
    isBack();
    if (next !== null && element.isConnected) {
      morph(element, next);
      showTimes(element);
    }
  } catch {
    isLost();
  } finally {
    asking.delete(id);
  }
  schedule(id);
}

function eachPart(action) {
  document.querySelectorAll("[data-poll]").forEach((element) => action(element.id));
}

function beside(input, problems) {
  const place = document.getElementById(`${input.id}-error`);
  if (place === null) return;
  place.textContent = problems.join(" ");
  if (problems.length) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

// Says what is still missing; beside a field only once that was filled in, or was refused before.
function keepChecked(form) {
  const touched = new Set();
  let timer;
  let latest = 0;
  async function check() {
    const mine = (latest += 1);
    let next;
    try {
      next = await ask(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    } catch {
      return; // sending the form checks it, too
    }
    if (next === null || mine !== latest) return;
    const found = [...next.querySelectorAll("[data-field]")];
    for (const input of form.elements) {
      if (!touched.has(input) && input.getAttribute("aria-invalid") !== "true") continue;
      beside(input, found.filter((one) => one.dataset.field === input.id).map((one) => one.textContent));
    }
    morph(document.getElementById(next.id), next);
  }
  form.addEventListener("change", (event) => {
    touched.add(event.target);
    clearTimeout(timer);
    timer = setTimeout(check, 200);
  });
}

export function start() {
  eachPart(schedule);
  document.querySelectorAll("form[data-check]").forEach(keepChecked);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) timers.forEach(clearTimeout);
    else eachPart(poll);
  });
  window.addEventListener("online", () => eachPart(poll));
  window.addEventListener("offline", isLost);
}
