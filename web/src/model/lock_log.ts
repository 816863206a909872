import type { AuditEvent, Lock } from "../../../clients/js/src/documents";
import type { StoreClock } from "../base/time";
import { daemon } from "./daemon";

const newestFirst = 300;
const pageSize = 5_000;

async function eventsOf(name: string, query: Record<string, string | number>): Promise<AuditEvent[]> {
    return (await daemon.get<{ events: AuditEvent[] }>("/v1/history", { name, ...query })).events;
}

/** Events after `seq` up to `last`. */
async function eventsAfter(name: string, seq: number, last: number): Promise<AuditEvent[]> {
    const found: AuditEvent[] = [];
    for (let after = seq; after < last;) {
        const page = await eventsOf(name, { which: "oldest", after_seq: after, limit: pageSize });
        const newest = page[page.length - 1];
        if (!newest) break;
        found.push(...page);
        after = newest.seq;
    }
    return found.filter((event) => event.seq <= last);
}

/** A lock and its newest events, which fit each other; or all of them, once somebody asked. */
export class LockLog {
    lock: Lock | null = null;
    events: AuditEvent[] = [];
    private wantsAll = false;

    constructor(
        readonly name: string,
        private readonly clock: StoreClock,
    ) {}

    /** Reads what is new. */
    async read(): Promise<void> {
        const asked = performance.now();
        const lock = await daemon.get<Lock>("/v1/lock", { name: this.name });
        this.clock.see(Date.parse(lock.as_of), asked);
        const newest = this.events[this.events.length - 1];
        // What a store that was emptied or restored has is another log.
        const goesOn = newest && newest.seq <= lock.seq;
        const events = goesOn
            ? [...this.events, ...(await eventsAfter(this.name, newest.seq, lock.seq))]
            : (await eventsOf(this.name, { limit: newestFirst })).filter((event) => event.seq <= lock.seq);
        this.lock = lock;
        this.events = events.filter((event) => event.seq > lock.pruned_seq);
    }

    /** Reads it from the beginning that was not pruned, or from as far as it was asked for before. */
    async readAnew(all = this.wantsAll): Promise<void> {
        this.wantsAll = all;
        this.events = [];
        await this.read();
        const { lock } = this;
        const oldest = this.events[0];
        if (all && lock && oldest && oldest.seq > lock.pruned_seq + 1)
            this.events = [...(await eventsAfter(this.name, lock.pruned_seq, oldest.seq - 1)), ...this.events];
    }
}
