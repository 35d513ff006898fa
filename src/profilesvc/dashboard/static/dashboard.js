// Times in the viewer's zone, and what a page without a script can do without. Everything else is HTML and htmx.
(function () {
  "use strict";
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const words = new Intl.RelativeTimeFormat("en", { numeric: "always" });
  const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  function ago(seconds) {
    const unit = units.find(([, size]) => seconds >= size);
    return unit ? words.format(-Math.floor(seconds / unit[1]), unit[0]) : "just now";
  }

  function tell(root) {
    root.querySelectorAll("time[data-ago], time[data-at]").forEach((time) => {
      const instant = new Date(time.dateTime);
      if (isNaN(instant)) return;
      if (time.hasAttribute("data-ago")) {
        time.textContent = ago((Date.now() - instant) / 1000);
        time.title = full.format(instant);
      } else {
        time.textContent = full.format(instant);
      }
    });
  }

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
  document.addEventListener("htmx:afterSwap", () => tell(document));
  document.querySelectorAll("[data-script]").forEach((element) => { element.hidden = false; });
  // The answer to a form that shows a secret: a reload asks for the page, and does not send the form again.
  const once = document.querySelector("[data-reload]");
  if (once) history.replaceState(null, "", once.dataset.reload);
  tell(document);
  setInterval(() => tell(document), 30000);
})();
