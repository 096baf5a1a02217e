// Labelling: every answer is sent, and the next reply is shown only when the server has it on disk.
const status = document.getElementById("label-status");
const desk = document.getElementById("desk");
let busy = false;

const DEAD = "This tab belongs to a viewer that has ended, so this was not stored. Open the address that unmask view printed; what you typed stays here. Every label before it is on disk.";
const SILENT = "The viewer does not answer, so this was not stored. Start unmask view again if it has ended; what you typed stays here. Every label before it is on disk.";

// What the server says to this: {problem} where nothing was stored.
async function send(address, content) {
  let answer;
  try {
    answer = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) });
  } catch {
    return { problem: SILENT };
  }
  try {
    return await answer.json();
  } catch {
    return { problem: answer.status === 403 ? DEAD : `This was not stored: the viewer answered ${answer.status}.` };
  }
}

function say(text, serious) {
  if (!status) return;
  status.textContent = text;
  status.hidden = !text;
  status.classList.toggle("serious", Boolean(serious));
}

const explain = ({ problem, advice }) => (advice ? `${problem.replace(/[.:]?$/, ".")} ${advice}` : problem);
const typed = (id) => document.getElementById(id)?.value ?? "";

async function press(key) {
  if (busy) return;
  busy = true;
  desk.setAttribute("aria-busy", "true");
  const { at, seen } = document.getElementById("reply").dataset;
  const answer = await send(location.pathname, {
    key, at: at ? Number(at) : null, seen: seen ?? "", text: typed("figure-text"), note: typed("note-text"),
  });
  busy = false;
  desk.removeAttribute("aria-busy");
  say(answer.problem ? explain(answer) : answer.message, answer.problem);
  if (!answer.html) return;
  const kept = String(answer.at) === at && answer.message ? [typed("figure-text"), typed("note-text")] : ["", ""];
  desk.innerHTML = answer.html;
  for (const [place, id] of ["figure-text", "note-text"].entries()) {
    const field = document.getElementById(id);
    if (field) field.value = kept[place];
  }
  history.replaceState(null, "", answer.at ? `?at=${answer.at}` : location.pathname);
  scrollTo(0, 0);
  document.getElementById("reply").focus({ preventScroll: true });
}

function leaveNote() {
  document.getElementById("reply").focus({ preventScroll: true });
  if (typed("note-text")) say("The note goes with your answer.");
}

if (desk) {
  desk.addEventListener("click", (event) => {
    const button = event.target.closest("[data-send]");
    if (button) press(button.dataset.send);
  });
  desk.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.id === "figure") press("=");
    else if ("labelled" in document.getElementById("reply").dataset) press("n");
    else leaveNote();
  });
  addEventListener("keydown", (event) => {
    const field = event.target.closest?.("[data-focus]");
    if (field && event.key === "Escape") return field.id === "note-text" ? leaveNote() : document.getElementById("reply").focus();
    if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    const wanted = desk.querySelector(`[data-focus="${CSS.escape(event.key)}"]`);
    if (!wanted || document.getElementById("keys").open) return;
    wanted.focus();
    event.preventDefault();
  });
  document.getElementById("reply").focus({ preventScroll: true });
}

const start = document.getElementById("label-start");
if (start) {
  start.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (busy) return;
    busy = true;
    say("Choosing the replies. This takes a few seconds for a large run.");
    const form = new FormData(start);
    const answer = await send(start.dataset.address, {
      runs: form.getAll("run"), who: form.get("who"), size: form.get("size") ? Number(form.get("size")) : null,
      probes: form.has("probes"),
    });
    busy = false;
    if (answer.problem) return say(explain(answer), true);
    history.replaceState(null, "", `?who=${encodeURIComponent(form.get("who"))}`);
    location.href = `/label/${answer.session}`;
  });
}

for (const form of document.querySelectorAll(".label-here form")) {
  form.elements.who.value = sessionStorage.getItem("who") ?? "";
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    const [slot, take] = fields.get("place").split(" ");
    sessionStorage.setItem("who", fields.get("who"));
    const answer = await send(form.dataset.address, {
      scenario: form.dataset.scenario, slot, take: Number(take), who: fields.get("who"), answer: fields.get("answer"), note: fields.get("note"),
    });
    form.querySelector("[role=status]").textContent = answer.problem ? explain(answer) : answer.message;
  });
}
