// A list of rows by keys: j and k go from row to row, n and N from one that flipped to the next, / to the search.
const rows = Array.from(document.querySelectorAll("a.row"));
const flips = rows.filter((row) => row.dataset.flip);
const isTyping = (target) => Boolean(target.closest && target.closest("select, textarea, input"));
const steps = { j: [rows, 1], k: [rows, -1], n: [flips, 1], N: [flips, -1] };

const move = (among, step) => {
  const here = rows.indexOf(document.activeElement);
  const beyond = among.filter((row) => (step > 0 ? rows.indexOf(row) > here : here >= 0 && rows.indexOf(row) < here));
  const target = step > 0 ? beyond[0] : beyond.at(-1);
  if (target) {
    target.focus();
    target.scrollIntoView({ block: "nearest" });
    return;
  }
  const page = among === rows && document.querySelector(`.pager a[rel=${step > 0 ? "next" : "prev"}]`);
  if (page && here >= 0) page.click();
};

addEventListener("keydown", (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const search = document.getElementById("search");
  if (event.key === "/" && search) search.focus();
  else if (steps[event.key]) move(...steps[event.key]);
  else return;
  event.preventDefault();
});
