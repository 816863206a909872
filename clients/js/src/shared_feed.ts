import type { Browser } from "./browser.js";
import { pause } from "./calls.js";
import type { Client } from "./client.js";
import { HoldfastError } from "./errors.js";
import type { FeedItem } from "./events.js";

type Listener = (item: FeedItem) => void;

type Message =
    | { kind: "feed_item"; url: string; item: FeedItem }
    /** A tab wants to know how the stream is. */
    | { kind: "feed_ask"; url: string };

const refusedPauseMs = 5_000;

/**
 * The events of all locks, by one stream for all tabs of a browser: browsers open few connections to one server. The
 * tab that has a Web Lock reads the stream, and passes it on; when it closes, the next one goes on where it ended, and
 * when it sleeps, a tab that is seen takes its place. Without Web Locks each tab has a stream while it is seen.
 *
 * A listener hears `ready` when it has missed nothing since, and `lost` when it may miss something.
 */
export class SharedFeed {
    private readonly listeners = new Set<Listener>();
    private readonly leaving = new AbortController();
    private standing = new AbortController();
    private leading: AbortController | null = null;
    /** What tells a newcomer how the stream is. */
    private last: FeedItem | null = null;
    private heardAt = performance.now();
    private locks: LockManager | null;
    private readonly stopHearing: () => void;

    constructor(
        private readonly client: Client,
        private readonly browser: Browser,
        /** A leader that does not answer for so long is asleep. */
        private readonly silenceMs = 15_000,
    ) {
        const { channel, page } = browser;
        this.locks = browser.locks;
        const hear = ({ data }: MessageEvent): void => this.hear(data as Message);
        channel?.addEventListener("message", hear);
        const stopWatching = page?.onChange((change) => {
            const isBack = change === "shown" || change === "returned";
            if (isBack) void this.checkLeader();
            if (!this.locks && isBack) void this.lead();
            if (!this.locks && change === "hidden") this.leading?.abort();
        });
        this.stopHearing = () => {
            channel?.removeEventListener("message", hear);
            stopWatching?.();
        };
        if (this.locks && channel) this.stand(false);
        else this.leadAlone();
        void this.checkLeader();
    }

    listen(listener: Listener): () => void {
        this.listeners.add(listener);
        if (this.last) listener(this.last);
        return () => this.listeners.delete(listener);
    }

    close(): void {
        this.leaving.abort();
        this.standing.abort();
        this.leading?.abort();
        this.listeners.clear();
        this.stopHearing();
    }

    /** Waits to become the leader, or does so at once, whoever it was. */
    private stand(steal: boolean): void {
        const { locks } = this;
        if (!locks || this.leaving.signal.aborted) return;
        this.standing.abort();
        const standing = new AbortController();
        this.standing = standing;
        const options: LockOptions = steal ? { steal } : { signal: standing.signal };
        locks
            .request(`holdfast:feed:${this.client.url}`, options, () => this.lead())
            .catch((error: unknown) => {
                if (standing.signal.aborted) return;
                if ((error as Error).name !== "AbortError") return this.leadAlone();
                // Taken away while this page slept: it follows from here on.
                this.leading?.abort();
                this.stand(false);
            });
    }

    /** There are no Web Locks, or this page may not use them: asked again, they would refuse for ever. */
    private leadAlone(): void {
        this.locks = null;
        if (!this.browser.page?.isHidden) void this.lead();
    }

    /** Reads the stream until this tab is no longer the one that does. */
    private async lead(): Promise<void> {
        if (this.leading || this.leaving.signal.aborted) return;
        const leading = new AbortController();
        this.leading = leading;
        while (!leading.signal.aborted) {
            try {
                const since = this.last?.cursor;
                for await (const item of this.client.events({ ...(since ? { since } : {}), signal: leading.signal }))
                    this.pass(item);
            } catch (error) {
                // The stream was refused: the cursor is another store's, or this browser was signed out.
                const isCursor = error instanceof HoldfastError && error.status === 400;
                this.pass({ kind: "lost", cursor: isCursor ? "" : (this.last?.cursor ?? "") });
            }
            await pause(refusedPauseMs, leading.signal);
        }
        this.leading = null;
        // Seen again before this ended.
        if (!this.locks && !this.browser.page?.isHidden) void this.lead();
    }

    private pass(item: FeedItem): void {
        if (this.locks) this.post({ kind: "feed_item", url: this.client.url, item });
        this.tell(item);
    }

    private tell(item: FeedItem): void {
        this.heardAt = performance.now();
        const isUp = item.kind === "event" && this.last?.kind !== "lost";
        this.last = isUp ? { kind: "ready", cursor: item.cursor } : item.kind === "event" ? this.last : item;
        for (const listener of this.listeners) listener(item);
    }

    private hear(message: Message): void {
        if (message?.url !== this.client.url) return;
        if (message.kind === "feed_item" && !this.leading) this.tell(message.item);
        if (message.kind === "feed_ask" && this.leading && this.last && this.locks)
            this.post({ kind: "feed_item", url: this.client.url, item: this.last });
    }

    /** A page that is seen must not follow a leader that sleeps. */
    private async checkLeader(): Promise<void> {
        if (!this.locks || !this.browser.channel || this.leading) return;
        const asked = performance.now();
        this.post({ kind: "feed_ask", url: this.client.url });
        await pause(this.silenceMs, this.leaving.signal);
        const isSeen = this.browser.page !== null && !this.browser.page.isHidden;
        if (!this.leading && isSeen && this.heardAt < asked && !this.leaving.signal.aborted) this.stand(true);
    }

    private post(message: Message): void {
        this.browser.channel?.postMessage(message);
    }
}
