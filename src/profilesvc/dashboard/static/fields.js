// Count what is typed in fields with a limit (data-count; the provider counts bytes or characters). Without a script,
// the limit is next to the field.
const encoder = new TextEncoder();

function show(field, counter) {
  const used = field.dataset.count === "bytes" ? encoder.encode(field.value).length : [...field.value].length;
  const written = (number) => number.toLocaleString(document.documentElement.lang);
  counter.textContent = document.body.dataset.used
    .replace("{used}", written(used)).replace("{most}", written(field.maxLength));
  counter.classList.toggle("error", used > field.maxLength);
}

export function startCounters() {
  document.querySelectorAll("[data-count]").forEach((field) => {
    const counter = document.createElement("small");
    counter.className = "counter";
    counter.setAttribute("aria-hidden", "true"); // the limit is in the description of the field
    field.after(counter);
    field.addEventListener("input", () => show(field, counter));
    show(field, counter);
  });
}

// Show the chosen photo before it is sent, and refuse one that is too large.
export function startPreviews() {
  document.querySelectorAll("input[data-preview]").forEach((input) => input.addEventListener("change", () => {
    const picture = document.getElementById(input.dataset.preview);
    const message = document.getElementById(`${input.id}-error`);
    const [file] = input.files;
    const isTooLarge = file !== undefined && file.size > Number(input.dataset.largest);
    message.textContent = isTooLarge ? document.body.dataset.large : "";
    if (isTooLarge) input.value = "";
    picture.hidden = file === undefined || isTooLarge;
    if (picture.hidden) return;
    const reader = new FileReader();
    reader.addEventListener("load", () => { picture.src = reader.result; });
    reader.readAsDataURL(file);
  }));
}
