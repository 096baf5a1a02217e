"use strict";
for (const form of document.querySelectorAll("form.filters")) {
  const list = document.getElementById(form.dataset.list);
  const status = form.nextElementSibling;
  const rows = Array.from(list.children);
  const verdicts = Array.from(form.elements.v.options, (option) => option.value);
  const archetypes = Array.from(form.elements.a.options, (option) => option.value);
  const button = form.elements.open;
  const keys = new Map(rows.map((row) => [row, row.dataset.k.split("|")]));
  const matches = (row, words) =>
    ["a", "v", "p"].every((key, at) => !form.elements[key].value || keys.get(row)[at] === form.elements[key].value) &&
    (!words || row.textContent.toLowerCase().includes(words));
  const show = () => {
    const words = form.elements.q.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      row.hidden = !matches(row, words);
      count += row.hidden ? 0 : 1;
    }
    status.textContent = `Showing ${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} scenarios.`;
    label();
  };
  const shown = () => rows.filter((row) => !row.hidden);
  const label = () => {
    button.textContent = shown().some((row) => !row.open) ? "Open all shown" : "Close all shown";
  };
  const order = () => {
    const key = form.elements.o.value;
    const known = key === "v" ? verdicts : archetypes;
    const place = (row) => (key ? known.indexOf(keys.get(row)[key === "v" ? 1 : 0]) : 0);
    const sorted = rows.map((row, index) => [place(row), index, row]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    list.append(...sorted.map((entry) => entry[2]));
  };
  let waiting = 0;
  form.addEventListener("change", (event) => (event.target.name === "o" ? order() : show()));
  form.elements.q.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 150);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  button.addEventListener("click", () => {
    const open = shown().some((row) => !row.open);
    for (const row of shown()) row.open = open;
    label();
  });
  list.addEventListener("toggle", label, true);
  form.hidden = false;
}
const reveal = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") {
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
  }
};
addEventListener("hashchange", reveal);
reveal();
