// Show times in the user's time zone, with its name. What is past is counted by the clock of the service, because the
// user's can be wrong, and because a demo moves its own.
const ahead = Number(document.body.dataset.now ?? Date.now()) - Date.now();
const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
// The language of the page, as the reader's region writes it.
const page = document.documentElement.lang;
const language = navigator.languages.find((one) => one.split("-")[0] === page) ?? page;
const words = new Intl.RelativeTimeFormat(language, { numeric: "always" });
const full = new Intl.DateTimeFormat(language, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});

function ago(seconds) {
  const unit = units.find(([, size]) => seconds >= size);
  return unit ? words.format(-Math.floor(seconds / unit[1]), unit[0]) : document.body.dataset.justNow;
}

export function showTimes(root) {
  root.querySelectorAll("time[data-ago], time[data-at]").forEach((time) => {
    const instant = new Date(time.dateTime);
    if (isNaN(instant)) return;
    const text = full.format(instant);
    time.textContent = time.hasAttribute("data-ago") ? ago((Date.now() + ahead - instant) / 1000) : text;
    if (time.hasAttribute("data-ago")) time.title = text;
  });
}
