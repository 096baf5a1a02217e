// Marks the text that was searched for on the page of a scenario, and unfolds what holds it. Nothing of the page changes.
const query = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase();
if (query && globalThis.Highlight && CSS.highlights) {
  const ranges = [];
  const walker = document.createTreeWalker(document.getElementById("content"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const text = node.data.toLowerCase();
    if (text.length !== node.data.length) continue; // a letter that is two in lower case: places would be wrong
    for (let at = text.indexOf(query); at >= 0 && ranges.length < 2000; at = text.indexOf(query, at + query.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + query.length);
      ranges.push(range);
      for (let fold = node.parentElement.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}
