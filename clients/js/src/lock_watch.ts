import { pause } from "./calls.js";
import type { Client } from "./client.js";
import type { Lock } from "./documents.js";
import { HoldfastError } from "./errors.js";
import type { FeedItem } from "./events.js";
import type { SharedFeed } from "./shared_feed.js";

export interface Sight {
    /** The lock as it was seen last; null before it was. */
    lock: Lock | null;
    /** Whether the daemon answers: without it the lock may be another by now. */
    isReachable: boolean;
    /** Why the daemon does not let it be read. */
    refusal: HoldfastError | null;
    /** When the daemon was asked, as `performance.now()`: nobody sets that clock. */
    askedAt: number;
}

/**
 * A lock as it is now: read when the watch begins, on each of its events, after whatever may have been missed, and when
 * its lease runs out.
 */
export class LockWatch {
    private sight: Sight = { lock: null, isReachable: true, refusal: null, askedAt: -Infinity };
    private isReading = false;
    private mustReadAgain = false;
    private expiry: ReturnType<typeof setTimeout> | undefined;
    private readonly ended = new AbortController();
    private readonly stopListening: () => void;

    constructor(
        private readonly client: Client,
        feed: SharedFeed,
        readonly name: string,
        private readonly onChange: (sight: Sight) => void,
    ) {
        this.stopListening = feed.listen((item) => this.hear(item));
        void this.read();
    }

    get seen(): Sight {
        return this.sight;
    }

    close(): void {
        this.ended.abort();
        clearTimeout(this.expiry);
        this.stopListening();
    }

    /** Looks now, and goes on looking until the daemon answers. */
    async read(): Promise<void> {
        this.mustReadAgain = true;
        if (this.isReading) return;
        this.isReading = true;
        let waitMs = 200;
        while (this.mustReadAgain && !this.ended.signal.aborted) {
            this.mustReadAgain = false;
            const askedAt = performance.now();
            try {
                const lock = await this.client.lookOnce(this.name);
                this.see({ lock, isReachable: true, refusal: null, askedAt });
                waitMs = 200;
            } catch (error) {
                // A refusal without a code is a gateway's, and says nothing of the lock.
                if (error instanceof HoldfastError && error.ending === "refused" && error.code !== "") {
                    this.see({ lock: null, isReachable: true, refusal: error, askedAt });
                    break;
                }
                this.see({ ...this.sight, isReachable: false });
                this.mustReadAgain = true;
                await pause(waitMs * (0.5 + Math.random() / 2), this.ended.signal);
                waitMs = Math.min(5_000, 2 * waitMs);
            }
        }
        this.isReading = false;
    }

    private hear(item: FeedItem): void {
        if (item.kind === "event" && item.event.name !== this.name) return;
        void this.read();
    }

    private see(sight: Sight): void {
        if (this.ended.signal.aborted) return;
        this.sight = sight;
        clearTimeout(this.expiry);
        const { lock } = sight;
        if (lock?.state === "held" && lock.expires_at !== null) {
            // The store's clock judges: both times are its own. A timer holds at most 24 days.
            const leftMs = Date.parse(lock.expires_at) - Date.parse(lock.as_of);
            this.expiry = setTimeout(() => void this.read(), Math.min(leftMs + 50, 2 ** 31 - 1));
        }
        this.onChange(sight);
    }
}

/** Resolves when nobody holds the lock any more; it is not taken. Early, without an error, when `signal` aborts. */
export function whenFree(client: Client, feed: SharedFeed, name: string, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        let isDone = false;
        const done = (): void => {
            isDone = true;
            // The first look may come while the watch is made.
            queueMicrotask(() => watch.close());
            signal?.removeEventListener("abort", done);
            resolve();
        };
        const watch = new LockWatch(client, feed, name, ({ lock }) => {
            if (!isDone && lock !== null && lock.state !== "held") done();
        });
        signal?.addEventListener("abort", done);
        if (signal?.aborted) done();
    });
}
