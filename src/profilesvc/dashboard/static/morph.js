// Update a part of the page, and change only nodes that differ. All others keep their focus, selection, scroll position
// and input.

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id : "";
}

function isSame(old, next) {
  return old.nodeName === next.nodeName && keyOf(old) === keyOf(next);
}

function setAttributes(old, next) {
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name); // the user opened it
  }
}

function setChildren(old, next) {
  const rest = [...old.childNodes];
  let place = old.firstChild;
  for (const child of [...next.childNodes]) {
    const index = rest.findIndex((candidate) => isSame(candidate, child));
    const match = index < 0 ? null : rest.splice(index, 1)[0];
    if (match === null) {
      old.insertBefore(child, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else old.insertBefore(match, place);
    change(match, child);
  }
  rest.forEach((child) => child.remove());
}

function change(old, next) {
  if (old.isEqualNode(next) || next.dataset?.keep !== undefined) return; // the service did not send it again
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = next.nodeValue;
    return;
  }
  setAttributes(old, next);
  setChildren(old, next);
}

function firstInView(element) {
  return [...element.querySelectorAll("[id]")].find((one) => one.getBoundingClientRect().bottom > 0);
}

// `next` is the new version of the part. Its nodes are moved into the page.
export function morph(old, next) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const caret = focused && "selectionStart" in focused ? [focused.selectionStart, focused.selectionEnd] : null;
  const anchor = focused ?? firstInView(old);
  const before = anchor?.getBoundingClientRect().top;
  change(old, next);
  if (focused?.isConnected && document.activeElement !== focused) {
    focused.focus({ preventScroll: true }); // a moved node loses its focus
    if (caret && caret[0] !== null) focused.setSelectionRange(...caret);
  }
  if (anchor?.isConnected && window.scrollY > 0) window.scrollBy(0, anchor.getBoundingClientRect().top - before);
}
