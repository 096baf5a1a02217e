"use strict";
const list = document.getElementById("list");
const form = document.querySelector("form.filters");
const bar = form.parentElement;
const status = bar.querySelector("[role=status]");
const asked = Array.from(list.children);
let rows = asked;
const fields = form.elements;
const controls = Array.from(fields).filter((field) => field.type !== "button");
const keys = new Map(
  rows.map((row) => {
    const [archetype, verdicts, pressure] = row.dataset.k.split("|");
    return [row, { archetype, pressure, verdicts: verdicts.split(",") }];
  }),
);
let current = null; // the scenario that was opened last, by itself
let waiting = 0;

// --- what is in sight
const verdictsOf = (row) => {
  const all = keys.get(row).verdicts;
  return fields.run && fields.run.value ? [all[fields.run.value - 1]] : all;
};
const isChecked = (name) => Boolean(fields[name] && fields[name].checked);
const matches = (row, words) =>
  ["archetype", "pressure"].every((name) => !fields[name].value || keys.get(row)[name] === fields[name].value) &&
  (fields.verdict.value ? verdictsOf(row).includes(fields.verdict.value) : verdictsOf(row).some(Boolean)) &&
  (!isChecked("differences") || new Set(keys.get(row).verdicts.filter(Boolean)).size > 1) &&
  (!words || row.textContent.toLowerCase().includes(words));
const shown = () => rows.filter((row) => !row.hidden);
const label = () => {
  fields.open.textContent = shown().some((row) => !row.open) ? "Open all shown" : "Close all shown";
};
const sort = () => {
  const name = fields.order.value;
  const known = name ? Array.from(fields[name].options, (option) => option.value) : [];
  const placeOf = (row) => (name === "verdict" ? known.indexOf(verdictsOf(row)[0]) : known.indexOf(keys.get(row)[name]));
  const sorted = name ? asked.map((row, index) => [placeOf(row), index, row]) : [];
  sorted.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const wanted = name ? sorted.map((entry) => entry[2]) : asked;
  if (wanted.some((row, index) => row !== rows[index])) list.append(...wanted);
  rows = wanted;
};
const refresh = () => {
  const words = fields.words.value.trim().toLowerCase();
  for (const row of rows) row.hidden = !matches(row, words);
  list.classList.toggle("replies", isChecked("replies"));
  const count = shown().length.toLocaleString("en");
  status.textContent = `Showing ${count} of ${rows.length.toLocaleString("en")} scenarios.`;
  label();
};

// --- the address: filters and the open scenario
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
const follow = () => {
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
  refresh();
  const row = rows.find((one) => one.id === words.get("open"));
  choose(row || null);
  if (!row && describe()) bar.scrollIntoView();
};

// --- what a reader does
form.addEventListener("change", (event) => {
  if (event.target.type === "search") return;
  if (["order", "run"].includes(event.target.name)) sort();
  refresh();
  note("pushState");
});
fields.words.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    refresh();
    note("replaceState");
  }, 150);
});
form.addEventListener("submit", (event) => event.preventDefault());
fields.open.addEventListener("click", () => {
  const open = shown().some((row) => !row.open);
  for (const row of shown()) row.open = open;
  label();
});
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
const step = (way, wanted, name) => {
  const all = shown();
  const ordered = way > 0 ? all : all.slice().reverse();
  const top = bar.getBoundingClientRect().bottom;
  const isAhead = (row) => {
    if (current && !current.hidden) return way * (all.indexOf(row) - all.indexOf(current)) > 0;
    return way > 0 ? row.getBoundingClientRect().bottom > top : row.getBoundingClientRect().top < top;
  };
  const row = ordered.find((one) => isAhead(one) && wanted(one));
  if (!row) {
    status.textContent = `No further ${name} among the ${all.length.toLocaleString("en")} scenarios shown.`;
    return;
  }
  choose(row);
  note("replaceState");
};
const isLie = (row) => verdictsOf(row).includes("lie");
const steps = {
  j: () => step(1, () => true, "scenario"),
  k: () => step(-1, () => true, "scenario"),
  n: () => step(1, isLie, "lie"),
  N: () => step(-1, isLie, "lie"),
};
addEventListener("keydown", (event) => {
  const typing = event.target.closest && event.target.closest("select, input:not([type=checkbox])");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(steps, event.key)) return;
  event.preventDefault();
  steps[event.key]();
});
for (const link of document.querySelectorAll("a[data-f]")) {
  link.href = `#${link.dataset.f}`;
  link.addEventListener("click", () => link.hash === location.hash && follow());
}
form.hidden = false;
bar.querySelector(".keys").hidden = false;
addEventListener("hashchange", follow);
follow();
