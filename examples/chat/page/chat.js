// The page. All that has to do with sending once is in idempotent-send.js; what makes the network
// bad is in `weather` at the end.
import { Outbox } from "/page/idempotent-send.js";

const $ = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
const where = (conversation) => `/chat/${encodeURIComponent(conversation)}/messages`;
const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));

let user = query.get("user") ?? sessionStorage.getItem("user") ?? localStorage.getItem("user") ?? "ann";
let conversations = JSON.parse(localStorage.getItem("conversations") ?? "null") ?? [
  { id: "1", name: "Dinner on Friday" },
  { id: "2", name: "Trip to Ghent" },
  { id: "3", name: "Flat share" },
];
let here = "";
let outbox;
/** What the server holds of each conversation. */
const stored = new Map();
/** How many attempts each key of this page took. */
const attempts = new Map();
const counts = { requests: 0, totals: null };

// ---- Sending

function openOutbox() {
  outbox?.close();
  // One outbox for each user: keys are the user's own.
  outbox = new Outbox({
    name: `chat/${user}`,
    fetch: weather,
    timeout: Number(query.get("timeout") ?? 15_000),
    locks: query.get("locks") === "off" ? null : navigator.locks,
  });
  outbox.addEventListener("change", ({ detail: entry }) => {
    attempts.set(entry.key, entry.attempts);
    if (entry.state === "sent") keep(entry);
    render();
  });
  outbox.ready.then(() => {
    $("messages").setAttribute("aria-busy", "false");
    render();
  });
}

async function send(text) {
  const request = {
    conversation: here,
    url: where(here),
    headers: { "X-User": user },
    body: { text },
  };
  try {
    await outbox.send(request);
    $("trouble").hidden = true;
  } catch (error) {
    // Nothing was kept and nothing is sent: the text goes back to where it was typed.
    $("text").value ||= text;
    $("trouble").textContent = `This browser cannot keep the message: ${error.message}`;
    $("trouble").hidden = false;
  }
}

/** The server's answer is the message as it is stored there. */
function keep(entry) {
  const message = entry.answer.body;
  const list = stored.get(entry.conversation) ?? [];
  if (entry.answer.kept && !list.some(({ id }) => id === message.id)) {
    stored.set(entry.conversation, [...list, { ...message, key: entry.key }]);
  }
  refresh();
}

$("form").onsubmit = (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  // The field is empty before anything else happens, so that a double click sends once.
  $("text").value = "";
  if (text) send(text);
};

// ---- What the server has

async function refresh() {
  const conversation = here;
  try {
    const [list, totals] = await Promise.all([read(where(conversation)), read("/stats")]);
    stored.set(conversation, list);
    counts.totals = totals;
    link(navigator.onLine ? "" : "offline");
  } catch {
    link(navigator.onLine ? "the server does not answer" : "offline");
  }
  render();
}

async function read(path) {
  const response = await fetch(path, { headers: { "X-User": user }, cache: "no-store" });
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

function link(trouble) {
  $("link").classList.toggle("away", trouble !== "");
  const text = trouble || "connected";
  if ($("link").textContent !== text) $("link").textContent = text;
}

// ---- Showing

function render() {
  const messages = stored.get(here) ?? [];
  const entries = outbox.entries(here);
  const there = new Set(messages.map(({ key }) => key));
  const rows = [
    ...messages.map((message) => messageRow(message, entries.find(({ key }) => key === message.key))),
    ...entries.filter(({ key }) => !there.has(key)).map(entryRow),
  ];
  fill($("messages"), rows.length ? rows : [{ id: "empty", kind: "empty", text: "No messages yet. Say hello." }]);
  renderConversations();
  renderCounts(messages, entries);
}

function messageRow(message, entry) {
  const mine = message.user === user;
  const time = new Date(message.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const row = { id: message.key ?? `#${message.id}`, text: message.text, kind: mine ? "mine" : "theirs" };
  if (entry) return { ...row, ...progress(entry) };
  const tries = attempts.get(message.key);
  const how = tries > 1 ? `sent · ${tries} attempts` : "sent";
  return { ...row, note: mine ? `${time} · ${how} ✓` : `${message.user} · ${time}` };
}

function entryRow(entry) {
  return { id: entry.key, text: JSON.parse(entry.body).text, kind: "mine", ...progress(entry) };
}

function progress(entry) {
  if (entry.state === "failed") {
    const doubt = entry.mayHaveArrived ? " It may have arrived." : "";
    return {
      kind: "mine failed",
      note: `failed: ${entry.why.detail ?? entry.why.title}.${doubt}`.replace("..", "."),
      acts: [
        ["Try again", () => outbox.tryAgain(entry.seq)],
        ["Send as new", () => outbox.sendAsNew(entry.seq)],
        ["Drop", () => outbox.drop(entry.seq)],
      ],
    };
  }
  const seconds = Math.max(0, Math.ceil((entry.nextAttempt - Date.now()) / 1000));
  const waiting = {
    turn: "waiting for its turn",
    offline: "waiting for the network",
    retry: `${entry.why?.title.toLowerCase() ?? ""} · again in ${seconds} s`,
  };
  const how = entry.waiting ? waiting[entry.waiting] : `attempt ${entry.attempts}`;
  return { kind: "mine sending", note: `sending · ${how}` };
}

/** Rows that are there stay, so that a screen reader tells only what is new. */
function fill(list, rows) {
  const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const old = new Map([...list.children].map((item) => [item.dataset.id, item]));
  rows.forEach((row, place) => {
    const item = old.get(row.id) ?? made("li");
    old.delete(row.id);
    item.dataset.id = row.id;
    const looks = JSON.stringify([row.kind, row.text, row.note, row.acts?.length]);
    if (item.dataset.looks !== looks) dress(item, row, looks);
    if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null);
  });
  for (const item of old.values()) item.remove();
  if (atEnd) list.scrollTop = list.scrollHeight;
}

function dress(item, row, looks) {
  item.dataset.looks = looks;
  item.className = row.kind;
  if (row.kind === "empty") return item.replaceChildren(row.text);
  item.replaceChildren(made("div", "bubble", row.text), made("div", "note", row.note));
  if (!row.acts) return;
  const acts = made("div", "acts");
  for (const [label, act] of row.acts) {
    const button = made("button", "", label);
    button.type = "button";
    button.onclick = act;
    acts.append(button);
  }
  item.append(acts);
}

function made(tag, className = "", text = "") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

function renderConversations() {
  const rows = conversations.map(({ id, name }) => {
    const link = made("a", "", name);
    link.href = `#${encodeURIComponent(id)}`;
    if (id === here) link.setAttribute("aria-current", "page");
    const waiting = outbox.entries(id).length;
    if (waiting) {
      const badge = made("b", "", waiting);
      badge.title = `${waiting} not sent`;
      link.append(badge);
    }
    const item = made("li");
    item.append(link);
    return item;
  });
  const looks = JSON.stringify(rows.map((row) => row.outerHTML));
  if ($("conversations").dataset.looks === looks) return;
  $("conversations").dataset.looks = looks;
  $("conversations").replaceChildren(...rows);
  $("title").textContent = conversations.find(({ id }) => id === here)?.name ?? here;
}

function renderCounts(messages, entries) {
  const mine = messages.filter((message) => message.user === user);
  const keys = new Set([...mine, ...entries].map(({ key, id }) => key ?? id));
  const duplicates = mine.length - new Set(mine.map(({ key, id }) => key ?? id)).size;
  $("sends").textContent = keys.size;
  $("requests").textContent = counts.requests;
  $("stored").textContent = mine.length;
  $("duplicates").textContent = duplicates;
  $("duplicates").parentElement.classList.toggle("bad", duplicates > 0);
  if (!counts.totals) return;
  const { runs, replayed, messages: all } = counts.totals;
  $("totals").textContent =
    `In all conversations: ${all} messages, ${runs} runs of a handler, ${replayed} requests answered from a record.`;
}

// ---- Who and where

function enter() {
  here = decodeURIComponent(location.hash.slice(1)) || conversations[0].id;
  if (!conversations.some(({ id }) => id === here)) addConversation(here, here);
  render();
  refresh();
}

function addConversation(id, name) {
  conversations = [...conversations, { id, name }];
  localStorage.setItem("conversations", JSON.stringify(conversations));
}

$("begin").onsubmit = (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  $("name").value = "";
  if (!name) return;
  const id = conversations.find((other) => other.name === name)?.id ?? name.toLowerCase().replaceAll(" ", "-");
  if (!conversations.some((other) => other.id === id)) addConversation(id, name);
  location.hash = encodeURIComponent(id);
};

$("user").value = user;
$("user").onchange = () => {
  user = $("user").value.trim() || "ann";
  $("user").value = user;
  sessionStorage.setItem("user", user);
  localStorage.setItem("user", user);
  stored.clear();
  openOutbox();
  refresh();
};

// ---- The weather: what the network does to requests, as the user likes

async function weather(url, init) {
  const fault = nextFault();
  const entry = { text: JSON.parse(init.body).text, key: init.headers["Idempotency-Key"] };
  const line = write(entry, fault);
  counts.requests += fault === "double" ? 2 : 1;
  render();
  if (fault === "request") {
    await pause(400);
    line("lost", "lost before it reached the server");
    throw new TypeError("the request is lost");
  }
  if (fault === "delay") await pause(4000);
  let response;
  try {
    const twice = [fetch(url, init), ...(fault === "double" ? [fetch(url, init)] : [])];
    response = (await Promise.all(twice)).at(-1);
    if (fault === "response") await response.text();
  } catch (error) {
    line("lost", "no answer");
    throw error;
  }
  if (fault === "response") {
    line("lost", `answered ${response.status}, and the answer was lost`);
    throw new TypeError("the response is lost");
  }
  const replayed = response.headers.has("Idempotency-Replayed");
  const stored = fault === "double" ? "twice at once, stored once" : "stored";
  if (replayed) line("again", `answered ${response.status} from the record of an earlier one`);
  else line(response.ok ? "stored" : "lost", `answered ${response.status}${response.ok ? `, ${stored}` : ""}`);
  return response;
}

let turn = 0;
function nextFault() {
  const chosen = new FormData($("weather")).get("fault");
  if (!$("often").checked) {
    $("weather").reset();
    return chosen;
  }
  turn += 1;
  return turn % 2 ? chosen : "none";
}

function write({ text, key }, fault) {
  const item = made("li");
  const what = made("span", "what", text);
  const end = made("span", "end", fault === "delay" ? "under way, delayed" : "under way");
  item.append(what, made("code", "", key.slice(0, 8)), end);
  $("line").querySelector(".none")?.remove();
  $("line").prepend(item);
  while ($("line").children.length > 40) $("line").lastChild.remove();
  return (className, outcome) => {
    item.className = className;
    end.textContent = outcome;
  };
}

openOutbox();
addEventListener("hashchange", enter);
addEventListener("online", refresh);
addEventListener("offline", () => link("offline"));
enter();
setInterval(() => document.hidden || refresh(), 2000);
setInterval(() => document.hidden || render(), 500);
