/** A message on its way. What the outbox gives out are copies. */
export interface Entry<Answer = unknown> {
  /** Its place in the outbox: entries of a conversation are sent in this order. */
  readonly seq: number;
  /** Made once, when it was sent; the same in every attempt. */
  readonly key: string;
  readonly conversation: string;
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  /** The bytes of every attempt. */
  readonly body: string;
  /** When it was sent by the user, in milliseconds since 1970. */
  readonly made: number;
  /** `dropped`: given up by the user, or sent as new. Entries that are `sent` or `dropped` are in
   *  the outbox no more. */
  readonly state: "sending" | "sent" | "failed" | "dropped";
  /** While it is sending: why no attempt is under way. `null` during one. */
  readonly waiting: "turn" | "retry" | "offline" | null;
  /** When its next attempt begins, in milliseconds since 1970; 0: as soon as it is its turn. */
  readonly nextAttempt: number;
  readonly attempts: number;
  /** An attempt ended without a word of the server: sent as new, it may be there twice. */
  readonly mayHaveArrived: boolean;
  /** Why the last attempt was not the last, or why it failed. */
  readonly why: Why | null;
  /** What the server said; once it is sent. */
  readonly answer?: {
    readonly status: number;
    /** The body, if it is JSON. */
    readonly body: Answer | undefined;
    readonly text: string;
    /** It was answered from the server's record: an attempt before this one had arrived. */
    readonly replayed: boolean;
    /** `false`: the message was handled, and the server did not keep its answer. */
    readonly kept: boolean;
  };
}

export interface Why {
  /** `no-answer`, `too-old`, `status-NNN`, or the server's own, such as `key-reused`. */
  readonly code: string;
  readonly title: string;
  readonly detail?: string;
  readonly status?: number;
}

export interface OutboxOptions {
  /** One outbox of one origin, shared by its tabs. Use one for each signed-in user. Default:
   *  `outbox`. */
  name?: string;
  /** Headers that are made anew for each attempt, such as a token that expires. */
  headers?: (entry: Entry) => Record<string, string> | Promise<Record<string, string>>;
  /** Instead of the browser's own. */
  fetch?: typeof globalThis.fetch;
  /** Of one attempt, in milliseconds; longer than the server lets a repeat wait. Default: 15 s. */
  timeout?: number;
  /** After how many milliseconds of trying, online, an entry fails. Default: 5 min. */
  giveUpAfter?: number;
  /** For how many milliseconds after it was made an entry that may have arrived is still sent by
   *  itself. Must be below the server's retention, which is a day by default. Default: 20 h. */
  keyLife?: number;
  /** Default: the browser's. `null`: none; two tabs may then send one entry, and the server runs it
   *  once. */
  locks?: LockManager | null;
}

/** What to send. */
export interface Outgoing {
  /** Its entries are sent one at a time, in order. */
  conversation: string | number;
  url: string | URL;
  /** A text is sent as it is, anything else as JSON. */
  body: unknown;
  headers?: Record<string, string>;
  /** Default: `POST`. */
  method?: string;
  /** Where the message has an id already. Never one that was used for another body. Default: new. */
  key?: string;
}

/** Keeps messages until the server has answered, over reloads and closed tabs, and sends each with
 *  one key. */
export class Outbox<Answer = unknown> extends EventTarget {
  constructor(options?: OutboxOptions);
  /** When it knows what it holds. */
  readonly ready: Promise<void>;
  /** Whether entries survive a reload. `false` where the browser gives no IndexedDB. */
  readonly durable: boolean | undefined;
  /** What is sending or failed, oldest first. */
  entries(conversation?: string | number): Entry<Answer>[];
  /** Makes the key, and resolves when the entry is on the disk; it is sent after that. Rejects if
   *  it cannot be kept: then nothing is sent. */
  send(outgoing: Outgoing): Promise<Entry<Answer>>;
  /** Sends a failed entry again, under its key. */
  tryAgain(seq: number): Promise<Entry<Answer> | undefined>;
  /** Sends the text of a failed entry as a new message, under a new key. It may then be there
   *  twice if `mayHaveArrived`. */
  sendAsNew(seq: number): Promise<Entry<Answer> | undefined>;
  /** Gives a failed entry up. */
  drop(seq: number): Promise<void>;
  /** Stops sending. What is in the outbox stays for the next page. */
  close(): void;
  /** An entry, of this tab or another, is new or has changed. */
  addEventListener(
    type: "change",
    listener: (event: CustomEvent<Entry<Answer>>) => void,
    options?: boolean | AddEventListenerOptions,
  ): void;
  addEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | AddEventListenerOptions,
  ): void;
  removeEventListener(
    type: "change",
    listener: (event: CustomEvent<Entry<Answer>>) => void,
    options?: boolean | EventListenerOptions,
  ): void;
  removeEventListener(
    type: string,
    listener: EventListenerOrEventListenerObject | null,
    options?: boolean | EventListenerOptions,
  ): void;
}

/** A new key: a random UUID, also where the page is no secure context. */
export function newKey(): string;
