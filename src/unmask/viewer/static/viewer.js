// Keys that every page has. A page names its own steps as links: <a data-key="j" href="…">.
const dialog = document.getElementById("keys");
const isTyping = (target) => Boolean(target.closest && target.closest("select, textarea, input:not([type=checkbox], [type=radio])"));

addEventListener("keydown", (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "?") {
    if (dialog.open) dialog.close();
    else dialog.showModal();
    event.preventDefault();
    return;
  }
  if (dialog.open) return;
  const link = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (link) link.click();
  else if (event.key === "g") location.href = "/";
  else return;
  event.preventDefault();
});
