// Fills in the rows of runs that were not read before, one after another, and moves through the list by key.
import { ask } from "/static/page.js";

const form = document.getElementById("runs-form");

const fill = (row, text) => {
  const holder = document.createElement("template");
  holder.innerHTML = text;
  for (const part of holder.content.querySelectorAll("[data-fill]")) {
    row.querySelector(`[data-fill="${part.dataset.fill}"]`)?.replaceWith(part);
  }
  const box = holder.content.querySelector("input");
  if (box?.disabled) row.querySelector("input").disabled = true;
  row.removeAttribute("data-pending");
};

const readRows = async () => {
  const status = form.querySelector(".bar .status");
  const waiting = [...form.querySelectorAll("tr[data-pending]")];
  for (const [place, row] of waiting.entries()) {
    const answer = await ask(`/row/${row.dataset.run}`);
    if (!answer) return;
    fill(row, await answer.text());
    const left = waiting.length - place - 1;
    status.textContent = `${status.dataset.total} runs${left ? `, ${left} being read` : ""}`;
  }
  const again = document.getElementById("again");
  if (waiting.length && again) again.hidden = false;
};

const countChosen = () => {
  const chosen = form.querySelectorAll("input:checked").length;
  document.getElementById("chosen").textContent = chosen ? `${chosen} chosen` : "";
  document.getElementById("compare").disabled = chosen < 2;
};

const step = (key) => {
  const links = [...form.querySelectorAll("th.who > a")];
  const here = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
  links[Math.min(links.length - 1, Math.max(0, here + (key === "j" ? 1 : here < 0 ? 1 : -1)))]?.focus();
};

if (form) {
  form.addEventListener("change", countChosen);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("keys").open) return;
    if (event.key === "j" || event.key === "k") step(event.key);
    else if (event.key === "x") document.activeElement.closest("tr")?.querySelector("input:not(:disabled)")?.click();
  });
  addEventListener("pageshow", countChosen);
  countChosen();
  readRows();
}
