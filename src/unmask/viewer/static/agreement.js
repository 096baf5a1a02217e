// j and k go through the replies that are read differently; Enter opens the one that has the focus.
const cards = [...document.querySelectorAll(".differ")];

addEventListener("keydown", (event) => {
  if (event.target.closest?.("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const place = cards.indexOf(document.activeElement.closest(".differ"));
  if (event.key === "Enter" && cards.includes(document.activeElement)) cards[place].querySelector("h3 a").click();
  else if (event.key === "j" && cards.length) cards[Math.min(place + 1, cards.length - 1)].focus();
  else if (event.key === "k" && cards.length) cards[Math.max(place - 1, 0)].focus();
});
