// Looks at the run again every few seconds while somebody sees the page and somebody works on the run.
import { ask } from "/static/page.js";

const wait = () => new Promise((done) => setTimeout(done, 2000));

for (;;) {
  await wait();
  const live = document.getElementById("live");
  if (document.hidden) continue;
  if (live.dataset.state === "done") break;
  const answer = await ask(location.pathname);
  if (!answer) break;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  live.replaceWith(page.getElementById("live"));
}
