import { eventKinds, type AuditEvent } from "./types";

export interface StreamListener {
    /** Everything that happens from now on is reported; what happened before has to be read. */
    ready(): void;
    event(event: AuditEvent): void;
    lost(): void;
}

/**
 * The daemon's event stream. It opens again by itself after a pause that grows; what was missed meanwhile is not
 * repeated, because `ready` makes the listener read everything anew.
 */
export class EventStream {
    private source: EventSource | null = null;
    private timer: number | undefined;
    private failures = 0;

    constructor(private readonly listener: StreamListener) {}

    open(): void {
        this.close();
        const source = new EventSource("/v1/events?since=end");
        this.source = source;
        source.addEventListener("ready", () => {
            this.failures = 0;
            this.listener.ready();
        });
        source.addEventListener("gap", () => this.listener.ready());
        for (const kind of eventKinds)
            source.addEventListener(kind, (message) => this.listener.event(JSON.parse((message as MessageEvent).data)));
        source.onerror = () => this.failed();
    }

    close(): void {
        this.source?.close();
        this.source = null;
        window.clearTimeout(this.timer);
    }

    private failed(): void {
        this.close();
        this.listener.lost();
        const pause = Math.min(500 * 2 ** this.failures, 10_000) * (0.75 + Math.random() / 2);
        this.failures += 1;
        this.timer = window.setTimeout(() => this.open(), pause);
    }
}
