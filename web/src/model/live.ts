import { feed } from "../../../clients/js/src/events";
import { pause } from "../../../clients/js/src/calls";
import { HoldfastError } from "../../../clients/js/src/errors";
import { daemon } from "./daemon";
import type { AuditEvent, Lock } from "../../../clients/js/src/documents";
import { StoreClock } from "../base/time";
import { after } from "./locks";

export type Link = { state: "loading" } | { state: "live" } | { state: "offline"; since: number | null; why: string };

export interface LiveListener {
    changed(): void;
    event(event: AuditEvent): void;
    signedOut(): void;
}

interface LockList {
    locks: Lock[];
    more?: boolean;
}

const pageSize = 5_000;
const refusedPause = 5_000;

async function allLocks(): Promise<Lock[]> {
    const locks: Lock[] = [];
    for (;;) {
        const last = locks[locks.length - 1];
        const page = await daemon.get<LockList>("/v1/locks", { unreadable: 1, limit: pageSize, after: last?.name });
        locks.push(...page.locks);
        if (!page.more || page.locks.length === 0) return locks;
    }
}

/**
 * All locks as they are now. The event stream says what changes at once; the list is read again from time to time for
 * what no event tells: the queue, and what a client of another version may have written.
 */
export class LiveLocks {
    readonly clock = new StoreClock();
    locks = new Map<string, Lock>();
    link: Link = { state: "loading" };

    private streaming: AbortController | null = null;
    private readonly touched = new Set<string>();
    private timer: number | undefined;
    private isReading = false;
    private isStreaming = false;
    private mustReadAgain = false;

    constructor(private readonly listener: LiveListener) {
        document.addEventListener("visibilitychange", () => {
            if (!document.hidden && this.streaming) void this.read();
        });
    }

    start(): void {
        this.stop();
        this.streaming = new AbortController();
        void this.follow(this.streaming.signal);
        this.plan();
    }

    stop(): void {
        this.streaming?.abort();
        this.streaming = null;
        window.clearTimeout(this.timer);
        this.locks = new Map();
        this.link = { state: "loading" };
    }

    /** Reads the list now; what is known is shown meanwhile. */
    async read(): Promise<void> {
        if (this.isReading) {
            this.mustReadAgain = true;
            return;
        }
        this.isReading = true;
        this.touched.clear();
        const asked = performance.now();
        const asker = this.streaming;
        try {
            const locks = await allLocks();
            if (asker === this.streaming) this.merge(locks, asked);
        } catch (error) {
            if (asker === this.streaming) this.failed(error);
        }
        this.isReading = false;
        this.plan();
        this.listener.changed();
        if (!this.mustReadAgain) return;
        this.mustReadAgain = false;
        void this.read();
    }

    /** Follows the event stream until `signal` aborts. */
    private async follow(signal: AbortSignal): Promise<void> {
        while (!signal.aborted) {
            try {
                for await (const item of feed(daemon, { signal })) {
                    if (item.kind === "event") this.take(item.event);
                    else if (item.kind === "lost") this.lost("The connection to the daemon is lost.");
                    else this.ready();
                }
            } catch (error) {
                if (signal.aborted) return;
                this.failed(error);
                await pause(refusedPause, signal);
            }
        }
    }

    /** From now on everything is reported; what happened before has to be read. */
    private ready(): void {
        this.isStreaming = true;
        void this.read();
    }

    private lost(why: string): void {
        this.isStreaming = false;
        this.offline(why);
        // The stream does not tell whether the daemon is away or the session has ended.
        void this.read();
    }

    private plan(): void {
        window.clearTimeout(this.timer);
        if (!this.streaming) return;
        const wait = Math.max(2_000, this.locks.size * 5);
        this.timer = window.setTimeout(() => {
            if (document.hidden) this.plan();
            else void this.read();
        }, wait);
    }

    private merge(locks: Lock[], asked: number): void {
        const next = new Map<string, Lock>();
        let newest = 0;
        for (const lock of locks) {
            newest = Math.max(newest, Date.parse(lock.as_of) || 0);
            const known = this.locks.get(lock.name);
            next.set(lock.name, known && known.seq > lock.seq ? known : lock);
        }
        // An event that came while the list was on its way knows better.
        for (const name of this.touched) {
            const known = this.locks.get(name);
            if (known && !next.has(name)) next.set(name, known);
        }
        this.locks = next;
        if (newest > 0) this.clock.see(newest, asked);
        if (this.isStreaming) this.link = { state: "live" };
    }

    private take(event: AuditEvent): void {
        this.touched.add(event.name);
        this.locks.set(event.name, after(this.locks.get(event.name), event));
        this.listener.event(event);
        this.listener.changed();
        // It does not say how long the lease would be, nor how long the question stays open.
        if (event.event === "override_requested") void this.read();
    }

    private failed(error: unknown): void {
        if (error instanceof HoldfastError && error.isSignedOut) {
            this.listener.signedOut();
            return;
        }
        this.offline(error instanceof HoldfastError ? error.message : "The answer of the daemon cannot be used.");
    }

    private offline(why: string): void {
        const since =
            this.link.state === "offline" ? this.link.since : this.link.state === "live" ? this.clock.now() : null;
        this.link = { state: "offline", since, why };
        this.listener.changed();
    }
}
