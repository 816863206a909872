// The stream of events, as the npm package `eventsource` reads it: a client that knows nothing of Holdfast.
import "./web_crypto";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { EventSource } from "eventsource";
import { Daemon } from "./daemon";

interface Seen {
    name: string;
    seq: number;
    kind: string;
}

const daemon = new Daemon();
before(async () => daemon.start());
after(async () => daemon.remove());

/** Follows the events from the beginning, and drops those that it has. */
class Reader {
    readonly seen: Seen[] = [];
    private readonly source: EventSource;
    private heard: (() => void) | null = null;

    constructor(url: string) {
        this.source = new EventSource(url);
        for (const kind of ["acquired", "renewed", "released"])
            this.source.addEventListener(kind, (message) => {
                const { name, seq } = JSON.parse(message.data as string) as Seen;
                if (!this.seen.some((event) => event.name === name && event.seq === seq))
                    this.seen.push({ name, seq, kind });
                this.heard?.();
            });
    }

    /** Until that lock has had so many events; the test itself has a limit. */
    async until(name: string, count: number): Promise<void> {
        while (this.of(name).length < count) await new Promise<void>((resolve) => (this.heard = resolve));
    }

    of(name: string): Seen[] {
        return this.seen.filter((event) => event.name === name);
    }

    close(): void {
        this.source.close();
    }
}

const isOneByOne = (events: Seen[]): boolean => events.every((event, index) => event.seq === index + 1);

test("a client from npm reads the stream, and goes on where it was when the daemon comes back", { timeout: 300_000 }, async () => {
    const before = await daemon.post<{ lease: string }>("/v1/acquire", { name: "a", ttl_ms: 600_000 });
    const reader = new Reader(`${daemon.url}/v1/events?since=`);
    try {
        await reader.until("a", 1);
        await daemon.stop("SIGKILL");
        // While nobody serves.
        await daemon.acquire("b");
        await daemon.start();
        await reader.until("b", 1);
        await daemon.post("/v1/release", { name: "a", lease: before.lease });
        await reader.until("a", 2);
        assert.deepEqual(
            reader.of("a").map((event) => event.kind),
            ["acquired", "released"],
        );
        assert.ok(isOneByOne(reader.of("a")) && isOneByOne(reader.of("b")));
    } finally {
        reader.close();
    }
});
