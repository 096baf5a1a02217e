// fetch() that tells the reader what went wrong: a viewer that has ended, a tab with an old token, a page that failed.
// Returns the answer, or nothing where the reader was told. What was typed stays on the page.
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
