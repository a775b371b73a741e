// Sends messages so that each arrives once, from a browser: an outbox that survives a reload, a
// closed tab and a train. The server's half is the crate tower-idempotency, or any server that
// keeps to `Idempotency-Key`.
//
//   const outbox = new Outbox({ name: "chat" });
//   outbox.addEventListener("change", ({ detail: entry }) => show(entry));
//   await outbox.send({ conversation: "42", url: "/chat/42/messages", body: { text: "hello" } });
//
// idempotent-send.d.ts says what each name means; docs/clients.md says why.

/** Nothing was decided: too late, too early, too much to do, or nobody there. */
const PASSING = new Set([408, 425, 429, 502, 503, 504]);

/** Refusals by which the server says that the message was handled before. */
const HANDLED = new Set(["response-not-kept", "response-not-acceptable"]);

/** The longest body that may outlive its page: browsers allow 64 KiB for all of them together. */
const KEEPALIVE = 8 << 10;

const LONGEST_WAIT = 30_000;

/** How long the browser may take to open a file. */
const PATIENCE = 10_000;

/** A new key: a random UUID. Without a secure context there is no `randomUUID`. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

export class Outbox extends EventTarget {
  #name;
  #options;
  #store;
  #entries = new Map();
  #pumps = new Map();
  #others;
  #closing = new AbortController();

  constructor({
    name = "outbox",
    headers = () => ({}),
    fetch = (...request) => globalThis.fetch(...request),
    timeout = 15_000,
    giveUpAfter = 5 * 60_000,
    keyLife = 20 * 60 * 60_000,
    locks = navigator.locks,
  } = {}) {
    super();
    this.#name = `idempotent-send/${name}`;
    this.#options = { headers, fetch, timeout, giveUpAfter, keyLife, locks };
    this.#others = new BroadcastChannel(this.#name);
    this.#others.onmessage = ({ data }) => this.#learn(data);
    this.ready = this.#open();
    const { signal } = this.#closing;
    addEventListener("online", () => this.#online(), { signal });
    // A page that is put aside must hold no file open that others wait for.
    addEventListener("pagehide", () => this.#store?.close(), { signal });
    addEventListener("pageshow", (event) => event.persisted && (this.ready = this.#open()), { signal });
    // Timers of a hidden page are slowed down.
    document.addEventListener("visibilitychange", () => this.#wake(), { signal });
  }

  entries(conversation) {
    return [...this.#entries.values()]
      .filter((entry) => conversation === undefined || entry.conversation === String(conversation))
      .sort((a, b) => a.seq - b.seq)
      .map((entry) => ({ ...entry }));
  }

  async send({ conversation, url, body, headers = {}, method = "POST", key = newKey() }) {
    const text = typeof body === "string";
    const entry = {
      key,
      conversation: String(conversation),
      url: new URL(url, location.href).href,
      method,
      headers: text ? { ...headers } : { "Content-Type": "application/json", ...headers },
      // The bytes of the first attempt are those of all: another body under this key is refused.
      body: text ? body : JSON.stringify(body),
      made: Date.now(),
      ...FRESH,
    };
    await this.ready;
    entry.seq = await this.#store.add(entry);
    this.#tell(entry);
    return { ...entry };
  }

  async tryAgain(seq) {
    return this.#update(seq, (entry) => entry.state === "failed" && Object.assign(entry, AGAIN));
  }

  async sendAsNew(seq) {
    await this.ready;
    // In one step, so that two clicks, or two tabs, make one new message.
    const [old, entry] = await this.#store.replace(seq, (old) => {
      if (old.state !== "failed") return undefined;
      const { seq: _, ...request } = old;
      return { ...request, ...FRESH, key: newKey(), made: Date.now() };
    });
    if (!entry) return undefined;
    this.#tell({ ...old, state: "dropped" });
    this.#tell(entry);
    return { ...entry };
  }

  async drop(seq) {
    await this.ready;
    const [old] = await this.#store.replace(seq, (old) => (old.state === "failed" ? null : undefined));
    if (old) this.#tell({ ...old, state: "dropped" });
  }

  close() {
    this.#closing.abort();
    this.#wake();
    this.#others.close();
    this.#store?.close();
  }

  async #open() {
    const open = () => openStore(this.#name);
    // A page that is left while its file is being made would be put aside, and block the next one's.
    // One that holds a lock is not put aside.
    const { locks } = this.#options;
    this.#store = await (locks ? locks.request(`${this.#name}/open`, open) : open());
    this.durable = this.#store.durable;
    await this.#reload();
  }

  /** What the file holds, also after this page was put aside and came back. */
  async #reload() {
    this.#entries.clear();
    for (const entry of await this.#store.all()) this.#learn(entry);
  }

  /** An entry has changed here: the file knows it already, the other tabs do not. */
  #tell(entry) {
    this.#others.postMessage(entry);
    this.#learn(entry);
  }

  #learn(entry) {
    if (this.#closing.signal.aborted) return;
    if (entry.state === "sending" || entry.state === "failed") this.#entries.set(entry.seq, entry);
    else this.#entries.delete(entry.seq);
    this.dispatchEvent(new CustomEvent("change", { detail: { ...entry } }));
    // Each tab is ready to go on with each entry: the one that wrote it may be closed at any time.
    if (entry.state === "sending") this.#pump(entry.conversation);
  }

  async #update(seq, change) {
    await this.ready;
    const entry = await this.#store.update(seq, change);
    if (entry) this.#tell(entry);
    return entry && { ...entry };
  }

  /** Sends a conversation's entries, oldest first, until none is left. */
  #pump(conversation) {
    const running = this.#pumps.get(conversation);
    if (running) return running.again();
    const pump = { more: true, wake() {}, again: () => ((pump.more = true), pump.wake()) };
    this.#pumps.set(conversation, pump);
    this.#run(conversation, pump)
      .catch((error) => this.#closing.signal.aborted || reportError(error))
      .finally(() => this.#pumps.get(conversation) === pump && this.#pumps.delete(conversation));
  }

  async #run(conversation, pump) {
    while (pump.more) {
      pump.more = false;
      let wait;
      while ((wait = await this.#alone(conversation, () => this.#step(conversation))) !== undefined) {
        if (wait > 0) await this.#sleep(pump, wait);
      }
    }
    // At once: who comes later must find no pump, rather than one that has stopped looking.
    this.#pumps.delete(conversation);
  }

  /** One tab at a time; not while it waits for its next attempt, since timers of hidden tabs are
   *  slow. Without Web Locks two tabs may send one entry, and the server runs it once. */
  #alone(conversation, step) {
    const { locks } = this.#options;
    if (!locks) return step();
    return locks.request(`${this.#name}/line/${conversation}`, { signal: this.#closing.signal }, step);
  }

  #sleep(pump, ms) {
    return new Promise((wake) => {
      const timer = setTimeout(wake, ms);
      pump.wake = () => {
        clearTimeout(timer);
        wake();
      };
    });
  }

  #wake() {
    for (const pump of this.#pumps.values()) pump.wake();
  }

  /** Those that got no answer are sent at once; those that were told when to come are not. */
  async #online() {
    const unanswered = (entry) => entry.state === "sending" && entry.why?.code === "no-answer";
    for (const entry of this.entries().filter(unanswered)) {
      await this.#update(entry.seq, (entry) => unanswered(entry) && Object.assign(entry, AGAIN));
    }
  }

  /** One attempt of the conversation's oldest entry, if its time has come. Gives how long to wait,
   *  or nothing when there is nothing to send. */
  async #step(conversation) {
    const next = this.#closing.signal.aborted ? undefined : await this.#store.oldest(conversation);
    if (!next) return undefined;
    if (next.attempts > 0 && Date.now() - next.made > this.#options.keyLife) {
      await this.#update(next.seq, (entry) => fail(entry, TOO_OLD));
      return 0;
    }
    // The clock may have been set back.
    const left = Math.min(next.nextAttempt - Date.now(), next.wait);
    if (left > 0) return left;

    const before = next.mayHaveArrived;
    const entry = await this.#update(next.seq, begin);
    if (!entry) return 0;
    const outcome = await this.#attempt(entry);
    if (outcome.state === "sent") {
      await this.#store.replace(entry.seq, () => null);
      this.#tell({ ...entry, ...outcome, waiting: null, why: null });
    } else {
      await this.#update(entry.seq, (entry) => this.#settle(entry, outcome, before));
    }
    return 0;
  }

  async #attempt(entry) {
    const { url, method, headers, body, key } = entry;
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), this.#options.timeout);
    const closed = () => abort.abort();
    this.#closing.signal.addEventListener("abort", closed);
    try {
      const response = await this.#options.fetch(url, {
        method,
        headers: { ...headers, ...(await this.#options.headers({ ...entry })), "Idempotency-Key": key },
        body,
        signal: abort.signal,
        cache: "no-store",
        keepalive: body.length < KEEPALIVE,
      });
      // An answer counts when it was read to its end.
      return judge(response, await response.text());
    } catch {
      return { state: "again", why: NO_ANSWER };
    } finally {
      clearTimeout(timer);
      this.#closing.signal.removeEventListener("abort", closed);
    }
  }

  #settle(entry, { state, why, after }, before) {
    const offline = why.code === "no-answer" && !navigator.onLine;
    if (state === "refused" || offline) entry.mayHaveArrived = before;
    if (state === "refused") return fail(entry, why);
    if (offline) entry.since = Date.now();
    if (Date.now() - entry.since > this.#options.giveUpAfter) return fail(entry, why);
    const backoff = Math.min(500 * 2 ** (entry.tries - 1), LONGEST_WAIT) * (0.5 + Math.random() / 2);
    const asked = (after ?? 0) * (1 + Math.random() / 4);
    entry.wait = Math.max(backoff, asked);
    entry.nextAttempt = Date.now() + entry.wait;
    return Object.assign(entry, { waiting: offline ? "offline" : "retry", why });
  }
}

/** How an entry begins, and how it begins again. */
const AGAIN = { state: "sending", waiting: "turn", why: null, nextAttempt: 0, wait: 0, tries: 0, since: 0 };
const FRESH = { ...AGAIN, attempts: 0, mayHaveArrived: false };

const NO_ANSWER = { code: "no-answer", title: "The server did not answer" };
const TOO_OLD = { code: "too-old", title: "This was not sent in time, and may have arrived or not" };

function begin(entry) {
  if (entry.state !== "sending") return false;
  // The page was closed or the machine slept: the time to give up after begins anew.
  if (Date.now() - entry.nextAttempt > 2 * LONGEST_WAIT) Object.assign(entry, { since: Date.now(), tries: 0 });
  entry.attempts += 1;
  entry.tries += 1;
  return Object.assign(entry, { waiting: null, mayHaveArrived: true });
}

function fail(entry, why) {
  return Object.assign(entry, { state: "failed", waiting: null, why });
}

/** What an answer means for the message. */
function judge(response, text) {
  const { status, headers } = response;
  const body = parsed(text);
  const code = typeof body?.type === "string" ? body.type.replace(/^urn:tower-idempotency:/, "") : "";
  const replayed = headers.has("Idempotency-Replayed");
  if (response.ok || HANDLED.has(code)) {
    return { state: "sent", answer: { status, body, text, replayed, kept: response.ok } };
  }
  const after = retryAfter(headers);
  const running = status === 409 && (after !== undefined || code === "still-running");
  const why = { code: code || `status-${status}`, status, title: body?.title ?? `Status ${status}`, detail: body?.detail };
  return { state: running || PASSING.has(status) ? "again" : "refused", why, after };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** In milliseconds. A date counts from the answer's own, since two clocks differ. */
function retryAfter(headers) {
  const said = headers.get("Retry-After");
  if (!said) return undefined;
  const seconds = Number(said);
  if (seconds >= 0) return seconds * 1000;
  const until = Date.parse(said) - Date.parse(headers.get("Date") ?? "");
  return until >= 0 ? until : undefined;
}

/** IndexedDB; memory where a browser refuses it or leaves it hanging, so that one can at least send. */
async function openStore(name) {
  const opening = open(name);
  const late = new Promise((_, fail) => setTimeout(fail, PATIENCE));
  try {
    return new DiskStore(await Promise.race([opening, late]));
  } catch {
    opening.then((db) => db.close(), () => {});
    return new MemoryStore();
  }
}

function open(name) {
  return new Promise((opened, failed) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      const entries = request.result.createObjectStore("entries", { keyPath: "seq", autoIncrement: true });
      entries.createIndex("line", ["conversation", "state", "seq"]);
    };
    request.onsuccess = () => {
      request.result.onversionchange = () => request.result.close();
      opened(request.result);
    };
    request.onerror = () => failed(request.error);
    request.onblocked = () => failed(new Error("another tab holds an older outbox open"));
  });
}

class DiskStore {
  durable = true;
  #db;

  constructor(db) {
    this.#db = db;
  }

  all = () => this.#in("readonly", (entries, give) => read(entries.getAll(), give));

  oldest(conversation) {
    const line = IDBKeyRange.bound([conversation, "sending"], [conversation, "sending", Infinity]);
    return this.#in("readonly", (entries, give) => read(entries.index("line").get(line), give));
  }

  add = (entry) => this.#in("readwrite", (entries, give) => read(entries.add(entry), give));

  /** Reads, changes and writes an entry, alone. `change` gives nothing to leave it as it is. */
  update(seq, change) {
    return this.#in("readwrite", (entries, give) =>
      read(entries.get(seq), (entry) => {
        if (!entry || !change(entry)) return;
        entries.put(entry);
        give(entry);
      }),
    );
  }

  /** Puts another entry, or none (`null`), in the place of one. Gives the old and the new. */
  async replace(seq, change) {
    const pair = await this.#in("readwrite", (entries, give) =>
      read(entries.get(seq), (old) => {
        const entry = old && change(old);
        if (entry === undefined) return;
        entries.delete(seq);
        if (entry === null) return give([old]);
        read(entries.add(entry), (seq) => give([old, { ...entry, seq }]));
      }),
    );
    return pair ?? [];
  }

  close() {
    this.#db.close();
  }

  /** One transaction; it is on the disk when its promise is kept. */
  #in(mode, work) {
    return new Promise((done, failed) => {
      let result;
      const transaction = this.#db.transaction("entries", mode, { durability: "strict" });
      transaction.oncomplete = () => done(result);
      transaction.onabort = () => failed(transaction.error);
      work(transaction.objectStore("entries"), (value) => (result = value));
    });
  }
}

function read(request, give) {
  request.onsuccess = () => give(request.result);
}

class MemoryStore {
  durable = false;
  #rows = new Map();
  #last = 0;

  all = async () => [...this.#rows.values()].map((entry) => ({ ...entry }));
  oldest = async (conversation) =>
    (await this.all()).find((entry) => entry.conversation === conversation && entry.state === "sending");

  async add(entry) {
    this.#last += 1;
    this.#rows.set(this.#last, { ...entry, seq: this.#last });
    return this.#last;
  }

  async update(seq, change) {
    const entry = this.#rows.has(seq) && { ...this.#rows.get(seq) };
    if (!entry || !change(entry)) return undefined;
    this.#rows.set(seq, entry);
    return { ...entry };
  }

  async replace(seq, change) {
    const old = this.#rows.get(seq);
    const entry = old && change(old);
    if (entry === undefined) return [];
    this.#rows.delete(seq);
    return entry === null ? [old] : [old, { ...entry, seq: await this.add(entry) }];
  }

  close() {}
}
