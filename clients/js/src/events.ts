import { Backoff, pause, type Calls } from "./calls.js";
import type { AuditEvent } from "./documents.js";
import { HoldfastError } from "./errors.js";

/** What a reader of events gets. */
export type FeedItem =
    | { kind: "event"; event: AuditEvent; cursor: string }
    /** Events may be missing before this: read what matters anew. */
    | { kind: "gap"; cursor: string }
    /** From here on everything is reported; it comes once for each connection. */
    | { kind: "ready"; cursor: string }
    /** The connection broke, and is being made again. */
    | { kind: "lost"; cursor: string };

export interface FeedOptions {
    /** A cursor of an earlier item; or `end`, which is also the default: only what happens from now on. */
    since?: string;
    signal?: AbortSignal;
    /** A connection on which nothing came for so long, not even a heartbeat, is given up. */
    silenceMs?: number;
}

export interface ServerSentEvent {
    id: string;
    event: string;
    data: string;
}

/** Cuts a stream of server-sent events, whatever the pieces in which it comes. */
export class SseParser {
    private rest = "";
    private lastId = "";
    private event = "";
    private data: string[] = [];

    push(chunk: string): ServerSentEvent[] {
        this.rest += chunk;
        const found: ServerSentEvent[] = [];
        // A carriage return at the end may be the first half of a line's end.
        for (;;) {
            const match = /\r\n|\n|\r(?!$)/.exec(this.rest);
            if (!match) return found;
            const line = this.rest.slice(0, match.index);
            this.rest = this.rest.slice(match.index + match[0].length);
            const complete = this.line(line);
            if (complete) found.push(complete);
        }
    }

    private line(line: string): ServerSentEvent | null {
        if (line === "") {
            const complete =
                this.data.length > 0 || this.event !== ""
                    ? { id: this.lastId, event: this.event || "message", data: this.data.join("\n") }
                    : null;
            this.event = "";
            this.data = [];
            return complete;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "id") this.lastId = value;
        else if (field === "event") this.event = value;
        else if (field === "data") this.data.push(value);
        return null;
    }
}

const mostNames = 50_000;

/** Passes each event of a lock once: what comes again after a lost connection is dropped. */
export class Deduplicator {
    private readonly newest = new Map<string, number>();

    isNew(event: Pick<AuditEvent, "name" | "seq">): boolean {
        const known = this.newest.get(event.name);
        if (known !== undefined && event.seq <= known) return false;
        // Put behind the others, so that the one that was silent longest is forgotten first.
        this.newest.delete(event.name);
        this.newest.set(event.name, event.seq);
        if (this.newest.size > mostNames) this.newest.delete(this.newest.keys().next().value as string);
        return true;
    }
}

/** Reads one connection until it ends. */
async function* connection(
    calls: Calls,
    since: string,
    silenceMs: number,
    signal: AbortSignal,
): AsyncGenerator<ServerSentEvent> {
    const silence = new AbortController();
    const onAbort = (): void => silence.abort();
    signal.addEventListener("abort", onAbort);
    let timer = setTimeout(onAbort, silenceMs);
    try {
        const response = await calls.open("/v1/events", { since }, "text/event-stream", silence.signal);
        const reader = response.body?.getReader();
        if (!reader) return;
        const decoder = new TextDecoder();
        const parser = new SseParser();
        for (;;) {
            const { done, value } = await reader.read();
            if (done) return;
            clearTimeout(timer);
            timer = setTimeout(onAbort, silenceMs);
            yield* parser.push(decoder.decode(value, { stream: true }));
        }
    } finally {
        clearTimeout(timer);
        silence.abort();
        signal.removeEventListener("abort", onAbort);
    }
}

/**
 * Events of all locks, each once, from `since` on. A lost connection is made again and goes on where it ended. Ends
 * when `signal` aborts; throws only what the daemon refuses.
 */
export async function* feed(calls: Calls, options: FeedOptions = {}): AsyncGenerator<FeedItem> {
    const signal = options.signal ?? new AbortController().signal;
    const backoff = new Backoff();
    const seen = new Deduplicator();
    let cursor = options.since ?? "end";
    while (!signal.aborted) {
        try {
            for await (const message of connection(calls, cursor, options.silenceMs ?? 60_000, signal)) {
                backoff.reset();
                if (message.id !== "") cursor = message.id;
                if (message.event === "gap" || message.event === "ready") {
                    yield { kind: message.event, cursor };
                    continue;
                }
                const event = JSON.parse(message.data) as AuditEvent;
                if (seen.isNew(event)) yield { kind: "event", event, cursor };
            }
        } catch (error) {
            if (error instanceof HoldfastError && error.ending === "refused") throw error;
            // Anything else is a connection that broke.
        }
        if (signal.aborted) return;
        yield { kind: "lost", cursor };
        await pause(backoff.next(), signal);
    }
}
