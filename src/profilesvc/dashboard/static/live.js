// Update parts of a page (data-poll), and check a form while the user fills it in (data-check). Without a script the
// user reloads the page and sends the form.
import { morph } from "./morph.js";
import { showTimes } from "./times.js";

const EVERY = 3000;
const LONGEST = 30000;
const LATE = 1500; // with the time between polls, a lost connection is shown within 5 s
const TIMEOUT = 10000;
const ALIVE = "/dashboard/static/icon.svg";
const notice = document.getElementById("connection");
const timers = new Map();
const polling = new Set();
let failures = 0;
let ended = false;

function isDirty() {
  return [...document.querySelectorAll("input, textarea")].some((input) =>
    input.type === "checkbox" || input.type === "radio" ? input.checked !== input.defaultChecked
      : input.value !== input.defaultValue);
}

function goTo(path) {
  ended = true;
  if (isDirty()) notice.textContent = notice.dataset.ended;
  else window.location.assign(path);
}

// Return the part of a page, or null if it has not changed.
async function fetchPart(url, options = {}) {
  const headers = { "X-Fragment": document.documentElement.lang };
  const response = await fetch(url, { ...options, headers, cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  const path = response.headers.get("X-Go-To");
  if (path !== null) {
    goTo(path);
    return null;
  }
  if (response.status === 204) return null;
  if (!response.ok) throw new Error(`status ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html").body.firstElementChild;
}

function reportRecovery() {
  failures = 0;
  if (!ended) notice.textContent = "";
}

function reportFailure() {
  failures += 1;
  showLost();
}

function showLost() {
  notice.textContent = notice.dataset.lost;
}

// A part may ask less often (data-every), such as one that the service reads from the provider.
function pauseOf(id) {
  return Number(document.getElementById(id)?.dataset.every ?? EVERY);
}

function schedule(id) {
  clearTimeout(timers.get(id));
  if (!ended) timers.set(id, setTimeout(poll, Math.min(pauseOf(id) * 2 ** failures, LONGEST), id));
}

// Report whether the service answers, and return its answer, or null if there is none.
async function watched(request) {
  const late = setTimeout(showLost, LATE);
  try {
    const answer = await request();
    reportRecovery();
    return answer;
  } catch {
    reportFailure();
    return null;
  } finally {
    clearTimeout(late);
  }
}

// A page without a part that is polled asks for a small file, so that it also shows a lost connection.
async function ping() {
  if (!document.hidden && !document.querySelector("[data-poll]:not([data-every])")) {
    await watched(() => fetch(ALIVE, { method: "HEAD", cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) }));
  }
  setTimeout(ping, Math.min(EVERY * 2 ** failures, LONGEST));
}

async function poll(id) {
  const element = document.getElementById(id);
  if (document.hidden || polling.has(id) || !element?.dataset.poll) return;
  polling.add(id);
  const url = element.dataset.poll;
  const next = await watched(() => fetchPart(url));
  polling.delete(id);
  if (element.dataset.poll !== url) { // another list was requested meanwhile
    poll(id);
    return;
  }
  if (next !== null && element.isConnected) {
    [element, next].forEach(showTimes); // before `morph`, which keeps what is read in its place
    morph(element, next);
  }
  schedule(id);
}

// Show a part of another address, such as a list with another filter.
export function show(id, url) {
  document.getElementById(id).dataset.poll = url;
  clearTimeout(timers.get(id));
  poll(id);
}

function eachPart(action) {
  document.querySelectorAll("[data-poll]").forEach((element) => action(element.id));
}

function showProblems(input, problems) {
  const message = document.getElementById(`${input.id}-error`);
  if (message === null) return;
  message.textContent = problems.join(" ");
  if (problems.length) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

// Show all problems of a form. Next to a field, show its problem only if the user has changed it or it was marked.
function checkOnChange(form) {
  const touched = new Set();
  let timer;
  let latest = 0;
  async function check() {
    const current = (latest += 1);
    let next;
    try {
      next = await fetchPart(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    } catch {
      return; // the server checks the form again when it is sent
    }
    if (next === null || current !== latest) return;
    const problems = [...next.querySelectorAll("[data-field]")];
    for (const input of form.elements) {
      if (!touched.has(input) && input.getAttribute("aria-invalid") !== "true") continue;
      showProblems(input, problems.filter((one) => one.dataset.field === input.id).map((one) => one.textContent));
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
  if (document.body.dataset.now) setTimeout(ping, EVERY);
  document.querySelectorAll("form[data-check]").forEach(checkOnChange);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) timers.forEach(clearTimeout);
    else eachPart(poll);
  });
  window.addEventListener("online", () => eachPart(poll));
  window.addEventListener("offline", reportFailure);
}
