// Takes over the parts of the page that have changed. A list that somebody points at or has the focus in stays as it is.
const live = document.getElementById("live");
const fed = document.getElementById("fed");
let source = null;
let over = false;

const say = (text) => {
  fed.textContent = text;
  fed.hidden = false;
};

const showParts = (text) => {
  const made = new DOMParser().parseFromString(text, "text/html");
  const parts = [...made.querySelectorAll("[data-part]")];
  const same = parts.map((part) => part.dataset.part).join() === [...live.querySelectorAll("[data-part]")].map((part) => part.dataset.part).join();
  if (!same) {
    live.replaceChildren(...made.body.childNodes);
    return;
  }
  for (const part of parts) {
    const old = live.querySelector(`[data-part="${part.dataset.part}"]`);
    const busy = part.dataset.part === "newest" && old.matches(":hover, :focus-within");
    if (!busy && old.innerHTML !== part.innerHTML) old.replaceChildren(...part.childNodes);
  }
};

const open = () => {
  if (source || over || document.hidden) return;
  source = new EventSource(live.dataset.events);
  source.onopen = () => say("This page follows the run.");
  source.onmessage = (event) => showParts(JSON.parse(event.data));
  source.addEventListener("end", () => {
    over = true;
    close();
    say("This page has stopped following.");
  });
  source.onerror = () => {
    const closed = source.readyState === EventSource.CLOSED;
    say(closed ? "This page does not follow the run: the viewer has ended, or too many pages are open." : "The viewer does not answer; trying again.");
  };
};

const close = () => {
  if (source) source.close();
  source = null;
};

// Browsers give one server a few connections: a tab that nobody sees must not keep one.
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
