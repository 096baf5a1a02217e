// Labelling. In the viewer every label is sent, and the next reply is shown only when the server has it on disk. In a
// page that was exported labels stay in the browser until they are saved as a file.
const find = (id) => document.getElementById(id);
const typed = (id) => find(id)?.value.trim() ?? "";
const explain = ({ problem, advice }) => (advice ? `${problem.replace(/[.:]?$/, ".")} ${advice}` : problem);

const DEAD = "This tab belongs to a viewer that has ended, so this was not stored. Open the address that unmask view printed; what you typed stays here. Every label before it is on disk.";
const SILENT = "The viewer does not answer, so this was not stored. Start unmask view again if it has ended; what you typed stays here. Every label before it is on disk.";
const UNKNOWN = "is no number. Type 40, 10..20, 7.. or ..10.";

function say(text, serious) {
  const status = find("label-status");
  status.textContent = text ?? "";
  status.hidden = !text;
  status.classList.toggle("serious", Boolean(serious));
}

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

// 40, 10..20, 10 to 20, 7.. or ..10 as [lower, upper]; null where it is none of these.
function parseFigure(text) {
  const number = "[-+−]?(?:\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.\\d+)?(?:[eE][-+]?\\d+)?";
  const [found, low, dots, high] = text.match(new RegExp(`^(${number})?\\s*(\\.\\.|to)?\\s*(${number})?$`)) ?? [];
  if (!found || (!low && !high) || (!dots && high)) return null;
  const [lower, upper] = [low, dots ? high : low].map((bound) => (bound ? Number(bound.replaceAll(",", "").replace("−", "-")) : null));
  const inOrder = lower === null || upper === null || lower <= upper;
  return inOrder && [lower, upper].every((bound) => bound === null || Number.isFinite(bound)) ? [lower, upper] : null;
}

function describeLabel({ letter, interval, relative, note, skipped }) {
  const [lower, upper] = interval ?? [null, null];
  const figure = lower === upper ? lower ?? "no number" : `${lower ?? ""}..${upper ?? ""}`;
  const reading = letter ?? (relative ? "as on your sheet" : figure);
  return `${skipped ? "You skipped this one" : `Your label: ${reading}`}${note ? ` (${note})` : ""}`;
}

function startLabelling({ labels, send: address, stop, lines, save, store }) {
  const replies = document.querySelectorAll("template.a-reply");
  const passed = new Set(); // what was passed over since the page was opened does not come again by itself
  const given = []; // what can be taken back
  let at = null;
  let busy = false;
  let unsaved = false;

  const isGiven = (label) => Boolean(label && !label.skipped);
  const remember = () => {
    try {
      localStorage.setItem(store, JSON.stringify({ who: typed("label-who"), labels: labels.map((label, place) => [lines[place].token, label]) }));
    } catch {
      // A browser that keeps nothing for files: beforeunload warns.
    }
  };
  const recall = () => {
    try {
      const { who, labels: kept } = JSON.parse(localStorage.getItem(store));
      const byToken = new Map(kept);
      for (const [place, { token }] of lines.entries()) labels[place] = byToken.get(token) ?? labels[place];
      find("label-who").value ||= who;
    } catch {
      // Nothing is kept, or what is kept is not ours.
    }
  };

  // The next reply without a label, round the end and back to this one; those that were skipped before come last.
  function next(place) {
    const order = labels.map((_, step) => (place + 1 + step) % labels.length);
    const left = order.filter((other) => !isGiven(labels[other]) && !passed.has(other));
    return left.find((other) => !labels[other]) ?? left[0] ?? null;
  }

  function show(place, message) {
    at = place;
    const done = labels.filter(isGiven).length;
    const skipped = labels.length - labels.filter((label) => !label || isGiven(label)).length;
    const count = (number) => number.toLocaleString("en-US");
    find("label-count").textContent = `${count(done)} of ${count(labels.length)} labelled${skipped ? `, ${count(skipped)} skipped` : ""}${at === null ? "" : `, reply ${count(at + 1)}`}`;
    find("label-progress").value = done;
    if (done) find("label-help")?.removeAttribute("open");
    find("desk").hidden = at === null;
    find("label-end").hidden = at !== null;
    find("note-text").value = "";
    if (at === null) find("end-title").textContent = done === labels.length ? `All ${count(done)} replies are labelled` : "Nothing is left but what you skipped";
    else {
      const parts = replies[at].content.cloneNode(true);
      for (const id of ["reply", "answers"]) find(id).replaceChildren(...parts.querySelector(`[data-for=${id}]`).childNodes);
      find("label-given").textContent = labels[at] ? describeLabel(labels[at]) : "";
    }
    say(message);
    scrollTo(0, 0);
    find(at === null ? "label-end" : "reply").focus({ preventScroll: true });
  }

  // Whether the label is stored. Only the last line of a reply counts, so what is taken back is given once more.
  async function keep(place, label) {
    busy = true;
    const answer = address ? await send(address, { place, ...label }) : {};
    busy = false;
    if (answer.problem) {
      say(explain(answer), true);
      return false;
    }
    labels[place] = label.taken_back ? null : { ...label, at: Date.now() / 1000 };
    if (!address) {
      unsaved = true;
      remember();
    }
    return true;
  }

  async function give(reading) {
    const place = at;
    const before = labels[place];
    const note = typed("note-text") || (before?.note ?? "");
    const stored = await keep(place, note ? { ...reading, note } : reading);
    if (stored) given.push([place, before]);
    return stored;
  }

  async function answer(reading) {
    if (await give(reading)) show(next(at));
  }

  async function skip() {
    const isNew = !labels[at];
    passed.add(at);
    if (!isNew || (await give({ skipped: true }))) show(next(at));
    else show(next(at), `${find("label-status").textContent} It is passed over.`);
  }

  async function undo() {
    if (!given.length) return say("There is nothing to take back since this page was opened.");
    const [place, before] = given.at(-1);
    const { at: _, ...reading } = before ?? { taken_back: true };
    if (!(await keep(place, reading))) return undefined;
    given.pop();
    passed.delete(place);
    return show(place, "Taken back.");
  }

  function leaveNote() {
    find("reply").focus({ preventScroll: true });
    if (typed("note-text")) say("The note goes with your answer.");
  }

  async function keepNote() {
    if (!isGiven(labels[at]) || !typed("note-text")) return leaveNote();
    const { note: _, at: __, ...reading } = labels[at];
    return (await give(reading)) && show(at);
  }

  function saveFile() {
    const who = typed("label-who");
    const chosen = lines.flatMap((line, place) => (isGiven(labels[place]) ? [JSON.stringify({ ...line, ...labels[place], who })] : []));
    if (!who) {
      find("label-who").focus();
      return say("Write your name first: it goes into the file.", true);
    }
    if (!chosen.length) return say("There is no label to save yet.");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([chosen.map((line) => `${line}\n`).join("")], { type: "application/jsonl" }));
    link.download = save;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    unsaved = false;
    return say(`${chosen.length} labels are in the file ${save}, where your browser keeps downloads. You can go on and save again.`);
  }

  function press(key) {
    if (busy) return undefined;
    if ("abcd".includes(key)) return answer(find("figure") ? { interval: [null, null] } : { letter: key.toUpperCase() });
    if (key === "s") return skip();
    if (key === "-") return show(Math.max(0, (at ?? labels.length) - 1));
    if (key === "u") return undo();
    if (key === "n" || key === "=") return find(key === "n" ? "note-text" : "figure-text").focus();
    if (save) return saveFile();
    location.href = stop;
    return undefined;
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-press]");
    if (button) press(button.dataset.press);
  });
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (busy) return;
    const figure = event.target.id === "figure" && parseFigure(typed("figure-text"));
    if (event.target.id === "note") keepNote();
    else if (figure) answer({ interval: figure });
    else if (typed("figure-text")) say(`“${typed("figure-text")}” ${UNKNOWN}`, true);
  });
  addEventListener("keydown", (event) => {
    if (event.target.matches?.("input") && event.key === "Escape") {
      if (at !== null) leaveNote();
      return;
    }
    if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey || find("keys")?.open) return;
    const wanted = [...document.querySelectorAll(`[data-press="${CSS.escape(event.key.toLowerCase())}"]`)].find((one) => one.getClientRects().length);
    if (!wanted) return;
    event.preventDefault();
    press(wanted.dataset.press);
  });
  if (!address) {
    recall();
    find("label-who").addEventListener("input", remember);
    addEventListener("beforeunload", (event) => unsaved && event.preventDefault());
  }
  show(next(-1));
}

function describeSize(form) {
  const chosen = [...form.querySelectorAll("[name=run]:checked")].map(({ dataset }) => [Number(dataset.scenarios), Number(dataset.takes)]);
  const size = Number(form.elements.size.value) || 0;
  const inAll = form.elements.in_all.value === "1" && chosen.length > 1;
  const total = chosen.reduce((sum, [scenarios, takes]) => sum + Math.min(inAll ? size / chosen.length : size, scenarios) * takes, 0);
  const count = (number) => Math.round(number).toLocaleString("en-US");
  const product = !inAll && chosen.length > 1 && total === chosen.length * size ? `${chosen.length} × ${count(size)} = ` : "";
  return chosen.length ? `${product}${count(total)} replies${product || !chosen.length ? "" : " at most"}` : "no run is chosen";
}

const form = find("label-start");
if (form) {
  const total = () => (find("label-total").textContent = describeSize(form));
  form.addEventListener("input", total);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    say("Choosing the replies. This takes a few seconds for a large run.");
    const fields = new FormData(form);
    const answer = await send(form.dataset.address, {
      runs: fields.getAll("run"), who: fields.get("who"), size: Number(fields.get("size")), in_all: fields.get("in_all") === "1",
      sample_seed: Number(form.dataset.seed), probes: fields.has("probes"),
    });
    if (answer.problem) {
      say(explain(answer), true);
      return;
    }
    history.replaceState(null, "", `?who=${encodeURIComponent(fields.get("who"))}`);
    location.href = `/label/${answer.session}`;
  });
  total();
}

if (find("label-data")) startLabelling(JSON.parse(find("label-data").textContent));
