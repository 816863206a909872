import { Calls, pause, repeated, type CallOptions } from "./calls.js";
import type { AuditEvent, Lock } from "./documents.js";
import { HoldfastError } from "./errors.js";
import { feed, type FeedItem, type FeedOptions } from "./events.js";
import { Elapsed, Hold, newCredentials } from "./hold.js";

export interface ClientOptions extends CallOptions {
    /** For how long a call is repeated that the daemon did not answer. */
    patienceMs?: number;
}

export interface AcquireOptions {
    /** How long the lease lasts without a renewal. */
    ttlMs?: number;
    /** How long to wait in the queue; 0 for not at all. */
    waitMs?: number;
    /** Who holds it: anything that tells people where to look. */
    holder?: string;
    /** On whose behalf. */
    user?: string;
    operation?: string;
    reason?: string;
    /** No renewal goes beyond this. */
    maxHoldMs?: number;
    /** Refused while one of these is held. */
    unlessHeld?: string[];
    meta?: Record<string, string>;
    /** Leaves the queue. */
    signal?: AbortSignal;
}

/** One request waits at most so long, so that proxies between do not cut it; the place in the queue stays. */
const longestWait = 20_000;

export class Client {
    private readonly calls: Calls;
    private readonly patienceMs: number;

    constructor(options: ClientOptions) {
        this.calls = new Calls(options);
        this.patienceMs = options.patienceMs ?? 20_000;
    }

    /**
     * Takes a lock and keeps it. Refused with `E_LOCK_CONFLICT` if another has it until the wait is over. If nobody
     * knows whether it was granted, that is thrown, and the lease that may be there is given back as well as possible.
     */
    async acquire(name: string, options: AcquireOptions = {}): Promise<Hold> {
        const ttlMs = options.ttlMs ?? 30_000;
        const credentials = newCredentials();
        const waitUntil = performance.now() + (options.waitMs ?? 0);
        const request = {
            name,
            lease: credentials.lease,
            ttl_ms: ttlMs,
            holder: options.holder,
            user: options.user,
            operation: options.operation,
            reason: options.reason,
            max_hold_ms: options.maxHoldMs,
            unless_held: options.unlessHeld,
            meta: options.meta,
        };
        for (;;) {
            const left = Math.max(0, Math.round(waitUntil - performance.now()));
            const wait = Math.min(left, longestWait);
            try {
                return await this.ask(
                    { ...request, ...(wait > 0 ? { wait_ms: wait } : {}) },
                    wait,
                    ttlMs,
                    options.signal,
                );
            } catch (error) {
                const mayAskAgain =
                    error instanceof HoldfastError &&
                    error.code === "E_LOCK_CONFLICT" &&
                    performance.now() < waitUntil &&
                    !options.signal?.aborted;
                if (mayAskAgain) {
                    // In case the daemon refuses at once.
                    await pause(100, options.signal);
                    continue;
                }
                if ((options.waitMs ?? 0) > 0 || !(error instanceof HoldfastError) || error.ending === "unknown")
                    await this.cancel(name, credentials.lease);
                throw error;
            }
        }
    }

    /** Takes away the lease that was seen, and no other. Not repeated by itself. */
    async unlock(name: string, seen: { lockId: string; actor?: string; reason?: string }): Promise<void> {
        const { lockId, ...more } = seen;
        await this.calls.post("/v1/unlock", { name, lock_id: lockId, ...more });
    }

    async lock(name: string): Promise<Lock> {
        return this.read<Lock>("/v1/lock", { name });
    }

    /** Locks that somebody holds, by name. */
    async locks(prefix = ""): Promise<Lock[]> {
        const locks: Lock[] = [];
        for (;;) {
            const after = locks[locks.length - 1]?.name;
            const page = await this.read<{ locks: Lock[]; more?: boolean }>("/v1/locks", { prefix, after });
            locks.push(...page.locks);
            if (!page.more || page.locks.length === 0) return locks;
        }
    }

    /** The newest events of a lock, oldest first. */
    async history(name: string, limit = 100): Promise<AuditEvent[]> {
        return (await this.read<{ events: AuditEvent[] }>("/v1/history", { name, limit })).events;
    }

    /** Whether `token` is still the current one. */
    async check(name: string, token: number): Promise<boolean> {
        try {
            await this.read("/v1/check", { name, token });
            return true;
        } catch (error) {
            if (error instanceof HoldfastError && error.status === 412) return false;
            throw error;
        }
    }

    /** Events of all locks that may be read, each once; see `FeedOptions`. */
    events(options: FeedOptions = {}): AsyncGenerator<FeedItem> {
        return feed(this.calls, options);
    }

    private async ask(body: object, waitMs: number, ttlMs: number, signal?: AbortSignal): Promise<Hold> {
        const lease = (body as { lease: string }).lease;
        // The time of the attempt that was answered; a wait in the daemon is not part of the lease, and is counted.
        let asked = new Elapsed();
        const lock = await repeated(
            () => {
                asked = new Elapsed();
                return this.calls.post<Lock>("/v1/acquire", body, signal, waitMs);
            },
            this.patienceMs + waitMs,
            signal,
        );
        if (waitMs > 0) {
            // Granted at an unknown moment of the wait: renewed at once, so that the whole ttl can be trusted.
            asked = new Elapsed();
            const renewed = await repeated(
                () => this.calls.post<Lock>("/v1/renew", { name: lock.name, lease, ttl_ms: ttlMs }, signal),
                ttlMs,
                signal,
            );
            return new Hold(this.calls, { ...renewed, lease, stolen_from: null }, asked, ttlMs);
        }
        return new Hold(this.calls, { ...lock, lease, stolen_from: null }, asked, ttlMs);
    }

    /** Gives up a place in the queue, or a lease of which nobody knows. Nobody hears if that fails: both run out. */
    private async cancel(name: string, lease: string): Promise<void> {
        try {
            await this.calls.post("/v1/cancel", { name, lease });
        } catch {
            // Said above.
        }
    }

    private read<T>(path: string, query: Record<string, string | number | undefined>): Promise<T> {
        return repeated(() => this.calls.get<T>(path, query), this.patienceMs);
    }
}
