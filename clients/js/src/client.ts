import { Calls, pause, repeated, type CallOptions } from "./calls.js";
import type { AuditEvent, Lock } from "./documents.js";
import { HoldfastError } from "./errors.js";
import { feed, type FeedItem, type FeedOptions } from "./events.js";
import { Elapsed, Hold, newCredentials, transferred, type Renewal, type TransferOptions } from "./hold.js";

export interface ClientOptions extends CallOptions {
    /** For how long a call is repeated that the daemon did not answer. */
    patienceMs?: number;
}

export interface AcquireOptions {
    /** How long the lease lasts without a renewal; otherwise the daemon's policy says so. */
    ttlMs?: number;
    /** Who renews it; `by_itself` if nothing is said. */
    renewal?: Renewal;
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
    /** The lease that was seen and seems to be abandoned: taken over if it is stale and was not renewed meanwhile. */
    takeOver?: { lockId: string; renewSeq: number };
    /** Leaves the queue. */
    signal?: AbortSignal;
}

export interface MoveOptions extends TransferOptions {
    renewal?: Renewal;
}

export interface OverrideOptions {
    holder?: string;
    user?: string;
    reason?: string;
    /** Of the lease that approval gives. */
    ttlMs?: number;
    /** For how long the question stands. */
    validForMs?: number;
}

/** A question that was asked, and the lease that it will be if the answer is yes. */
export interface Question {
    lockId: string;
    lease: string;
    expiresAt: string | null;
    /** Of the lock when it was asked. */
    seq: number;
}

export interface OverrideAnswer {
    verdict: "approve" | "deny";
    /** Of the holder; an operator answers without it. */
    lease?: string;
    reason?: string;
}

/** One request waits at most so long, so that proxies between do not cut it; the place in the queue stays. */
const longestWait = 20_000;

export class Client {
    readonly url: string;
    private readonly calls: Calls;
    private readonly patienceMs: number;

    constructor(options: ClientOptions) {
        this.calls = new Calls(options);
        this.url = this.calls.url;
        this.patienceMs = options.patienceMs ?? 20_000;
    }

    /**
     * Takes a lock and keeps it. Refused with `E_LOCK_CONFLICT` if another has it until the wait is over. If nobody
     * knows whether it was granted, that is thrown, and the lease that may be there is given back as well as possible.
     */
    async acquire(name: string, options: AcquireOptions = {}): Promise<Hold> {
        const credentials = newCredentials();
        const waitUntil = performance.now() + (options.waitMs ?? 0);
        const request = {
            name,
            lease: credentials.lease,
            ttl_ms: options.ttlMs,
            holder: options.holder,
            user: options.user,
            operation: options.operation,
            reason: options.reason,
            max_hold_ms: options.maxHoldMs,
            unless_held: options.unlessHeld,
            meta: options.meta,
            take_over: options.takeOver && { lock_id: options.takeOver.lockId, renew_seq: options.takeOver.renewSeq },
        };
        for (;;) {
            const left = Math.max(0, Math.round(waitUntil - performance.now()));
            const wait = Math.min(left, longestWait);
            try {
                return await this.ask({ ...request, ...(wait > 0 ? { wait_ms: wait } : {}) }, wait, options);
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

    /** Goes on with a lease that was granted at an unknown moment, such as an approved request: renews it now. */
    async adopt(
        name: string,
        lease: string,
        options: Pick<AcquireOptions, "ttlMs" | "renewal" | "signal"> = {},
    ): Promise<Hold> {
        let asked = new Elapsed();
        const lock = await repeated(
            () => {
                asked = new Elapsed();
                return this.calls.post<Lock>("/v1/renew", { name, lease, ttl_ms: options.ttlMs }, options.signal);
            },
            this.patienceMs,
            options.signal,
        );
        return new Hold(this.calls, { ...lock, lease, stolen_from: null }, asked, options.ttlMs, options.renewal);
    }

    /** Moves a lease of one's own, which another tab or program has, here without a gap: it has another token then. */
    async takeFrom(name: string, lease: string, holder: string, options: MoveOptions = {}): Promise<Hold> {
        const { grant, asked } = await transferred(this.calls, name, lease, holder, options, this.patienceMs);
        return new Hold(this.calls, grant, asked, undefined, options.renewal);
    }

    /**
     * Asks the holder, or an operator, to hand the lock over. Refused with `E_DENIED` while somebody else's question
     * waits for an answer. What comes of it stands in the lock: `LockWatch` tells.
     */
    async requestOverride(name: string, options: OverrideOptions = {}): Promise<Question> {
        const { lease, lockId } = newCredentials();
        const body = {
            name,
            lease,
            holder: options.holder,
            user: options.user,
            reason: options.reason,
            ttl_ms: options.ttlMs,
            valid_for_ms: options.validForMs,
        };
        const lock = await repeated(() => this.calls.post<Lock>("/v1/override/request", body), this.patienceMs);
        return { lockId, lease, expiresAt: lock.override?.expires_at ?? null, seq: lock.seq };
    }

    /** Answers a question as the holder, with its `lease`, or as an operator. */
    async answerOverride(name: string, question: string, answer: OverrideAnswer): Promise<void> {
        const { verdict, ...more } = answer;
        const body = { name, lock_id: question, ...more };
        await repeated(() => this.calls.post(`/v1/override/${verdict}`, body), this.patienceMs);
    }

    /** Takes away the lease that was seen, and no other. Not repeated by itself. */
    async unlock(name: string, seen: { lockId: string; actor?: string; reason?: string }): Promise<void> {
        const { lockId, ...more } = seen;
        await this.calls.post("/v1/unlock", { name, lock_id: lockId, ...more });
    }

    async lock(name: string): Promise<Lock> {
        return this.read<Lock>("/v1/lock", { name });
    }

    /** The same without a repetition, for a caller that looks again by itself. */
    lookOnce(name: string): Promise<Lock> {
        return this.calls.get<Lock>("/v1/lock", { name });
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

    private async ask(body: { name: string; lease: string }, waitMs: number, options: AcquireOptions): Promise<Hold> {
        // The time of the attempt that was answered; a wait in the daemon is not part of the lease, and is counted.
        let asked = new Elapsed();
        const lock = await repeated(
            () => {
                asked = new Elapsed();
                return this.calls.post<Lock>("/v1/acquire", body, options.signal, waitMs);
            },
            this.patienceMs + waitMs,
            options.signal,
        );
        // Granted at an unknown moment of the wait: renewed at once, so that all of its time can be trusted.
        if (waitMs > 0) return this.adopt(body.name, body.lease, options);
        const grant = { ...lock, lease: body.lease, stolen_from: null };
        return new Hold(this.calls, grant, asked, options.ttlMs, options.renewal);
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
