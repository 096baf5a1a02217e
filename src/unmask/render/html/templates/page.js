// Every page: keys, folds that are fetched when they are opened, and the list of scenarios with its filter.

const isTyping = (target) => Boolean(target.closest && target.closest("select, textarea, input:not([type=checkbox], [type=radio])"));
const hasModifier = (event) => event.ctrlKey || event.metaKey || event.altKey;

// --- what is asked of the viewer
const ENDED = "The viewer does not answer: it has ended. Start unmask view again and open the address that it prints. What was labelled is on disk.";

export function tell(text) {
  let note = document.getElementById("told");
  if (!note) {
    note = document.createElement("p");
    note.id = "told";
    note.className = "note serious";
    note.setAttribute("role", "alert");
    document.getElementById("content").prepend(note);
  }
  note.textContent = text;
}

// The answer, or nothing where the reader was told why there is none. What was typed stays on the page.
export async function ask(address, body) {
  const how = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(address, { ...how, credentials: "same-origin" });
  } catch {
    tell(ENDED);
    return undefined;
  }
  if (answer.ok) return answer;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const said = page.querySelector("[role=alert]");
  const advice = said && said.nextElementSibling;
  tell(said ? `${said.textContent.trim()} ${advice && !advice.querySelector("a") ? advice.textContent.trim() : ""}` : `The viewer answered ${answer.status}.`);
  return undefined;
}

// Fills a fold with the main part of the page that it names.
const load = async (fold) => {
  const address = fold.dataset.src;
  if (!address) return;
  delete fold.dataset.src;
  const answer = await ask(address);
  if (!answer) {
    fold.dataset.src = address;
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  fold.lastElementChild.replaceChildren(...page.getElementById("part").childNodes);
  mark();
};
document.addEventListener("toggle", (event) => event.target.open && event.target.dataset.src && load(event.target), true);

// --- keys of every page
const dialog = document.getElementById("keys");
addEventListener("keydown", (event) => {
  if (isTyping(event.target) || hasModifier(event)) return;
  const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (event.key === "?" && dialog.open) dialog.close();
  else if (event.key === "?") dialog.showModal();
  else if (!dialog.open && link) link.click();
  else return;
  event.preventDefault();
});

// --- the list of scenarios
const list = document.getElementById("list");
let wanted = ""; // the text that is searched for, in small letters
const marks = globalThis.CSS && CSS.highlights && globalThis.Highlight && new Highlight();
if (marks) CSS.highlights.set("found", marks);

// Marks what was searched for in the open scenarios and unfolds what holds it. The page itself does not change.
function mark() {
  if (!marks) return;
  marks.clear();
  for (const row of wanted ? document.querySelectorAll("#list > details[open]") : []) {
    const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue; // a letter that is two in lower case: places would be wrong
      for (let at = text.indexOf(wanted); at >= 0 && marks.size < 2000; at = text.indexOf(wanted, at + wanted.length)) {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + wanted.length);
        marks.add(range);
        for (let fold = node.parentElement.closest("details"); fold && fold !== row; fold = fold.parentElement.closest("details")) fold.open = true;
      }
    }
  }
}

const browse = () => {
  const form = document.getElementById("filters");
  const bar = form.parentElement;
  const status = bar.querySelector("[role=status]");
  const asked = Array.from(list.children);
  const fields = form.elements;
  const controls = Array.from(fields).filter((field) => field.type !== "button");
  const keys = new Map(
    asked.map((row) => {
      const [archetype, verdicts, pressure, change, reasons] = row.dataset.k.split("|");
      return [row, { archetype, pressure, change, verdicts: verdicts.split(","), reasons: reasons.split(",") }];
    }),
  );
  const many = list.classList.contains("many");
  let rows = asked;
  let hits = null; // of a search that the viewer makes, the ids of what it found
  let current = null; // the scenario that was opened last, by itself
  let waiting = 0;

  // What is in sight.
  const verdictsOf = (row) => {
    const all = keys.get(row).verdicts;
    return fields.run && fields.run.value ? [all[fields.run.value - 1]] : all;
  };
  const isChecked = (name) => Boolean(fields[name] && fields[name].checked);
  const hasChange = ({ verdicts, change }, name) => {
    if (name === "differs") return new Set(verdicts.filter(Boolean)).size > 1;
    if (name === "flips") return Boolean(change);
    const [run, from, to] = name.split(" ");
    const ends = [verdicts[0], verdicts[run - 1]];
    if (!ends[0] || !ends[1]) return false;
    if (to) return ends[0] === from.replace("_", " ") && ends[1] === to.replace("_", " ");
    const lies = ends.map((verdict) => verdict === "lie");
    return Boolean(change) && lies[0] === (from === "truth") && lies[1] === (from === "lie");
  };
  const matches = (row) => {
    const key = keys.get(row);
    return (
      ["archetype", "pressure"].every((name) => !fields[name].value || key[name] === fields[name].value) &&
      (fields.verdict.value ? verdictsOf(row).includes(fields.verdict.value) : verdictsOf(row).some(Boolean)) &&
      (!fields.change || !fields.change.value || hasChange(key, fields.change.value)) &&
      (!fields.reason || !fields.reason.value || key.reasons.includes(fields.reason.value)) &&
      (!wanted || (hits ? hits.has(row.id) : row.textContent.toLowerCase().includes(wanted)))
    );
  };
  const shown = () => rows.filter((row) => !row.hidden);
  const label = () => {
    if (fields.open) fields.open.textContent = shown().some((row) => !row.open) ? "Open all shown" : "Close all shown";
  };
  const sort = () => {
    const name = fields.order.value;
    const known = name ? Array.from(fields[name].options, (option) => option.value) : [];
    const placeOf = (row) => (name === "verdict" ? known.indexOf(verdictsOf(row)[0]) : known.indexOf(keys.get(row)[name]));
    const sorted = name ? asked.map((row, index) => [placeOf(row), index, row]) : [];
    sorted.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const order = name ? sorted.map((entry) => entry[2]) : asked;
    if (order.some((row, index) => row !== rows[index])) list.append(...order);
    rows = order;
  };
  const refresh = () => {
    for (const row of rows) row.hidden = !matches(row);
    list.classList.toggle("replies", isChecked("replies"));
    const count = shown().length.toLocaleString("en");
    status.textContent = `Showing ${count} of ${rows.length.toLocaleString("en")} scenarios.`;
    label();
    mark();
  };
  const search = async () => {
    const text = fields.words.value.trim();
    if (text.toLowerCase() === wanted) return;
    const answer = text && list.dataset.search ? await ask(list.dataset.search + encodeURIComponent(text)) : null;
    hits = answer ? new Set(await answer.json()) : null;
    wanted = text.toLowerCase();
  };

  // The address: filters and the open scenario.
  const describe = () => {
    const words = new URLSearchParams();
    for (const field of controls) {
      const value = field.type === "checkbox" ? (field.checked ? field.value : "") : field.value.trim();
      if (value) words.set(field.name, value);
    }
    if (current && current.open) words.set("open", current.id);
    return words.toString();
  };
  const note = (way) => {
    const text = describe();
    if (text === location.hash.slice(1)) return;
    try {
      history[way](null, "", text ? `#${text}` : location.href.split("#")[0]);
    } catch {
      // A page inside another one may have no address of its own; all but the address works.
    }
  };
  const scrollToRow = (row) =>
    scrollTo({ top: row.getBoundingClientRect().top + scrollY - bar.offsetHeight, behavior: "instant" });
  const choose = (row) => {
    if (current && current !== row) current.open = false;
    current = row;
    if (!row) return;
    row.hidden = false;
    row.open = true;
    row.firstElementChild.focus({ preventScroll: true });
    scrollToRow(row);
  };
  const follow = async () => {
    const hash = location.hash.slice(1);
    const target = hash && document.getElementById(hash);
    if (target) {
      if (rows.includes(target)) return choose(target);
      for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
      return target.scrollIntoView();
    }
    const words = new URLSearchParams(hash);
    for (const field of controls) {
      const value = words.get(field.name) || "";
      if (field.type === "checkbox") field.checked = value === field.value;
      else field.value = value;
      if (field.tagName === "SELECT" && field.selectedIndex < 0) field.value = "";
    }
    sort();
    if (fields.words.value.trim().toLowerCase() !== wanted) await search();
    refresh();
    const row = rows.find((one) => one.id === words.get("open"));
    choose(row || null);
    if (!row && describe()) bar.scrollIntoView();
  };

  // What a reader does.
  form.addEventListener("change", (event) => {
    if (event.target.type === "search") return;
    if (["order", "run"].includes(event.target.name)) sort();
    refresh();
    note("pushState");
  });
  fields.words.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      await search();
      refresh();
      note("replaceState");
    }, 150);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  if (fields.open) {
    fields.open.addEventListener("click", () => {
      const open = shown().some((row) => !row.open);
      for (const row of shown()) row.open = open;
      label();
    });
  }
  fields.more.addEventListener("click", () => {
    fields.more.setAttribute("aria-expanded", form.classList.toggle("all"));
  });
  list.addEventListener("toggle", label, true);
  list.addEventListener("click", (event) => {
    const summary = event.target.closest("summary");
    if (!summary || summary.parentElement.parentElement !== list) return;
    current = summary.parentElement;
    // The fold turns only after this event.
    setTimeout(() => note("pushState"));
  });
  const step = (way, isWanted, name) => {
    const all = shown();
    const ordered = way > 0 ? all : all.slice().reverse();
    const top = bar.getBoundingClientRect().bottom;
    const isAhead = (row) => {
      if (current && !current.hidden) return way * (all.indexOf(row) - all.indexOf(current)) > 0;
      return way > 0 ? row.getBoundingClientRect().bottom > top : row.getBoundingClientRect().top < top;
    };
    const row = ordered.find((one) => isWanted(one) && isAhead(one));
    if (!row) {
      status.textContent = `No further ${name} among the ${all.length.toLocaleString("en")} scenarios shown.`;
      return;
    }
    choose(row);
    note("replaceState");
  };
  const isMarked = (row) => (many ? Boolean(keys.get(row).change) : verdictsOf(row).includes("lie"));
  const steps = {
    j: () => step(1, () => true, "scenario"),
    k: () => step(-1, () => true, "scenario"),
    n: () => step(1, isMarked, many ? "flip" : "lie"),
    N: () => step(-1, isMarked, many ? "flip" : "lie"),
    "/": () => {
      form.classList.add("all");
      fields.words.focus();
    },
  };
  addEventListener("keydown", (event) => {
    if (isTyping(event.target) || hasModifier(event) || dialog.open || !Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    steps[event.key]();
  });
  for (const link of document.querySelectorAll("a[data-f]")) {
    link.href = `#${link.dataset.f}`;
    link.addEventListener("click", () => link.hash === location.hash && follow());
  }
  form.hidden = false;
  addEventListener("hashchange", follow);
  follow();
};

document.documentElement.classList.add("live");
if (list) browse();
