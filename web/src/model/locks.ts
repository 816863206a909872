import { instant } from "../base/time";
import type { AuditEvent, Lock, Override } from "../../../clients/js/src/documents";

/** What a lock is at this moment: a lease that ran out is expired before anybody has written that down. */
export function stateAt(lock: Lock, now: number): Lock["state"] {
    if (lock.state !== "held") return lock.state;
    const end = instant(lock.expires_at);
    return end !== null && end <= now ? "expired" : "held";
}

/** The question that waits for an answer, if it still can be answered. */
export function openQuestion(lock: Lock, now: number): Override | null {
    const question = lock.override;
    if (!question || (instant(question.expires_at) ?? 0) <= now) return null;
    return question;
}

const noLease = {
    lock_id: null,
    holder: null,
    user: null,
    operation: null,
    reason: null,
    acquired_at: null,
    renewed_at: null,
    renew_seq: null,
    expires_at: null,
    max_until: null,
    ttl_ms: null,
    override: null,
    meta: {},
} as const;

function emptyLock(event: AuditEvent): Lock {
    return {
        ...noLease,
        name: event.name,
        state: "free",
        token: 0,
        waiters: 0,
        as_of: event.at,
        seq: 0,
        pruned_seq: 0,
        chain: event.prev_hash,
        meta: {},
    };
}

function endAfter(event: AuditEvent, max: string | null, ttl: number): string {
    const end = Date.parse(event.at) + ttl;
    return new Date(Math.min(end, instant(max) ?? end)).toISOString();
}

function granted(lock: Lock, event: AuditEvent): Lock {
    const ttl = Number(event.details["ttl_ms"] ?? lock.ttl_ms ?? 0);
    return {
        ...lock,
        ...noLease,
        state: "held",
        lock_id: event.lock_id,
        holder: event.holder,
        user: event.user,
        operation: event.details["operation"] ?? null,
        reason: event.reason,
        acquired_at: event.at,
        renewed_at: event.at,
        renew_seq: 0,
        ttl_ms: ttl,
        expires_at: endAfter(event, null, ttl),
    };
}

function extended(lock: Lock, event: AuditEvent): Lock {
    const ttl = Number(event.details["ttl_ms"] ?? lock.ttl_ms ?? 0);
    return {
        ...lock,
        state: "held",
        lock_id: event.lock_id,
        holder: event.holder,
        user: event.user,
        renewed_at: event.at,
        renew_seq: (lock.renew_seq ?? 0) + 1,
        ttl_ms: ttl,
        expires_at: endAfter(event, lock.max_until, ttl),
    };
}

function asked(lock: Lock, event: AuditEvent): Lock {
    const ttl = Number(event.details["ttl_ms"] ?? 0);
    return {
        ...lock,
        override: {
            lock_id: event.lock_id,
            holder: event.holder ?? "",
            user: event.user,
            reason: event.reason,
            ttl_ms: ttl,
            asked_at: event.at,
            // Until the lock is read again: the event does not say for how long the question stays open.
            expires_at: new Date(Date.parse(event.at) + 3_600_000).toISOString(),
        },
    };
}

/**
 * The lock after an event. An estimate until the lock is read again: an event knows neither the queue nor the longest
 * hold.
 */
export function after(before: Lock | undefined, event: AuditEvent): Lock {
    const lock = before ?? emptyLock(event);
    if (event.seq <= lock.seq) return lock;
    const known = { ...lock, token: event.token, seq: event.seq, chain: event.hash, as_of: event.at };
    switch (event.event) {
        case "acquired":
        case "stolen":
        case "transferred":
        case "override_approved":
            return granted(known, event);
        case "renewed":
        case "revived":
            return extended(known, event);
        case "released":
        case "broken":
        case "repaired":
            return { ...known, ...noLease, state: "free" };
        case "expired":
            return { ...known, state: "expired" };
        case "override_requested":
            return asked(known, event);
        case "override_denied":
            return { ...known, override: null };
        default:
            return known;
    }
}

/** `host:user:pid:start_time`, as Holdfast names a process; null for a holder that named itself. */
export function processOf(holder: string): { host: string; user: string; pid: string } | null {
    const match = /^([^:]+):([^:]+):(\d+):\d+$/.exec(holder);
    return match ? { host: match[1] ?? "", user: match[2] ?? "", pid: match[3] ?? "" } : null;
}

/** As people would say it: `ci@web-3 (pid 812)`, or what the holder called itself. */
export function holderWords(holder: string | null): string {
    if (holder === null) return "";
    const process = processOf(holder);
    return process ? `${process.user}@${process.host} (pid ${process.pid})` : holder;
}

export function isMine(lock: Lock, me: string): boolean {
    if (me === "" || lock.holder === null) return false;
    return lock.user === me || lock.holder === me || processOf(lock.holder)?.user === me;
}

export type SortKey = "name" | "holder" | "token" | "age" | "expires" | "waiters";

export interface View {
    search: string;
    prefix: string;
    mine: boolean;
    sort: SortKey;
    descending: boolean;
}

function matches(lock: Lock, needle: string): boolean {
    return [lock.name, lock.holder, lock.user, lock.operation, lock.reason].some(
        (text) => text !== null && text.toLowerCase().includes(needle),
    );
}

const byName = (a: Lock, b: Lock): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);

const orders: Record<SortKey, (a: Lock, b: Lock) => number> = {
    name: byName,
    holder: (a, b) => (a.user ?? a.holder ?? "").localeCompare(b.user ?? b.holder ?? ""),
    token: (a, b) => a.token - b.token,
    age: (a, b) => (instant(b.acquired_at) ?? 0) - (instant(a.acquired_at) ?? 0),
    expires: (a, b) => (instant(a.expires_at) ?? Infinity) - (instant(b.expires_at) ?? Infinity),
    waiters: (a, b) => a.waiters - b.waiters,
};

/** The locks that a view shows, in its order. Locks that nobody holds are left out. */
export function selected(locks: Iterable<Lock>, view: View, me: string): Lock[] {
    const needle = view.search.trim().toLowerCase();
    const found: Lock[] = [];
    for (const lock of locks) {
        if (lock.state === "free" || !lock.name.startsWith(view.prefix)) continue;
        if (view.mine && !isMine(lock, me)) continue;
        if (needle !== "" && !matches(lock, needle)) continue;
        found.push(lock);
    }
    const order = orders[view.sort];
    const sign = view.descending ? -1 : 1;
    return found.sort((a, b) => sign * order(a, b) || byName(a, b));
}

/** The folders of the names that are there, `migrate/`, with how many locks each has; the largest first. */
export function prefixes(locks: Iterable<Lock>): Array<{ prefix: string; count: number }> {
    const counts = new Map<string, number>();
    for (const lock of locks) {
        const slash = lock.name.indexOf("/");
        if (lock.state === "free" || slash < 0) continue;
        const prefix = lock.name.slice(0, slash + 1);
        counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    }
    return [...counts]
        .map(([prefix, count]) => ({ prefix, count }))
        .sort((a, b) => b.count - a.count || (a.prefix < b.prefix ? -1 : 1));
}
