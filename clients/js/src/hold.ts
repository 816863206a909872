import { pause, repeated, type Calls } from "./calls.js";
import type { Grant, Lock } from "./documents.js";
import { HoldfastError, withoutAnswer } from "./errors.js";

/**
 * Time that has passed, by the clock that counted more of it: the monotonic one stops while the machine sleeps, and the
 * wall clock may be set back. What is wrong makes a lease seem older, never younger.
 */
export class Elapsed {
    private readonly monotonic = performance.now();
    private readonly wall = Date.now();

    get ms(): number {
        return Math.max(performance.now() - this.monotonic, Date.now() - this.wall);
    }
}

export interface Credentials {
    lease: string;
    lockId: string;
}

/** A lease is chosen before it is asked for, so that the request can be repeated. */
export function newCredentials(): Credentials {
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    // A random UUID, RFC 9562.
    bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
    bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const id = hex.slice(0, 32);
    const lockId = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join("-");
    return { lockId, lease: `${lockId}.${hex.slice(32)}` };
}

export interface TransferOptions {
    user?: string;
    reason?: string;
}

/**
 * Hands a lease over to another that is chosen here. `asked` is older than the answer: a transfer leaves the end of the
 * lease where it was, so what the new lease can be trusted for is in the answer's times.
 */
export async function transferred(
    calls: Calls,
    name: string,
    lease: string,
    to: string,
    { user, reason }: TransferOptions,
    patienceMs: number,
): Promise<{ grant: Grant; asked: Elapsed }> {
    const next = newCredentials();
    const body = { name, lease, to, to_lease: next.lease, user, reason };
    let asked = new Elapsed();
    try {
        const lock = await repeated(() => {
            asked = new Elapsed();
            return calls.post<Lock>("/v1/transfer", body);
        }, patienceMs);
        return { grant: { ...lock, lease: next.lease, stolen_from: null }, asked };
    } catch (error) {
        // The new lease may be there, and nobody would ever give it back.
        if (error instanceof HoldfastError && error.ending === "unknown")
            calls.post("/v1/cancel", { name, lease: next.lease }).catch(() => undefined);
        throw error;
    }
}

/** Who renews a lease: the hold, as long as it lives, or its owner, by calling `renew()`. */
export type Renewal = "by_itself" | "by_owner";

/**
 * A lease that this process keeps by renewing it.
 *
 * It is trusted for its ttl, counted from before the request left that brought it, and an answer that did not come
 * never extends it. `signal` aborts as soon as it is lost; stop touching the resource then.
 */
export class Hold {
    readonly name: string;
    /** The fencing token: what the resource compares. */
    readonly token: number;
    readonly lockId: string;
    /** The secret that proves the lease. */
    readonly lease: string;
    private readonly lossController = new AbortController();
    private readonly ended = new AbortController();
    private lossError: HoldfastError | null = null;
    private since: Elapsed;
    private current: Lock;

    constructor(
        private readonly calls: Calls,
        grant: Grant,
        asked: Elapsed,
        private readonly ttlMs: number | undefined,
        private readonly renewal: Renewal = "by_itself",
    ) {
        this.name = grant.name;
        this.token = grant.token;
        this.lockId = grant.lock_id ?? "";
        this.lease = grant.lease;
        this.current = grant;
        this.since = asked;
        void (renewal === "by_itself" ? this.keep() : this.watchClock());
    }

    /** The lock as the daemon saw it last. */
    get lock(): Lock {
        return this.current;
    }

    /** Aborts when the lease is lost, not when it is given back. */
    get signal(): AbortSignal {
        return this.lossController.signal;
    }

    /** Why it was lost, or null. */
    get loss(): HoldfastError | null {
        this.lookAtClock();
        return this.lossError;
    }

    /** True as long as the lease can be trusted. Ask right before each thing that must not be done without it. */
    get isHeld(): boolean {
        return this.loss === null && !this.ended.signal.aborted;
    }

    /** For how long the lease can be trusted from now on. */
    get leftMs(): number {
        return this.isHeld ? Math.max(0, this.trustedMs() - this.since.ms) : 0;
    }

    /** Headers that tell a server which lease a request is made under. */
    get headers(): Record<string, string> {
        return { "Holdfast-Lock": this.name, "Holdfast-Token": String(this.token) };
    }

    /** Renews now. */
    async renew(): Promise<void> {
        const asked = new Elapsed();
        const left = this.leftMs;
        if (left <= 0) throw this.lossError ?? withoutAnswer("refused", "This lease was given back.");
        const body = { name: this.name, lease: this.lease, ttl_ms: this.ttlMs };
        try {
            const lock = await repeated(
                () => this.calls.post<Lock>("/v1/renew", body, this.ended.signal),
                left,
                this.ended.signal,
            );
            if (this.lossError) throw this.lossError;
            this.current = lock;
            this.since = asked;
        } catch (error) {
            if (error instanceof HoldfastError && error.isLeaseOver) this.lose(error);
            throw error;
        }
    }

    /** Gives the lock back. An unknown outcome is thrown: the lease then ends by itself. */
    async release(): Promise<void> {
        if (this.ended.signal.aborted) return;
        this.ended.abort();
        const body = { name: this.name, lease: this.lease };
        await repeated(() => this.calls.post("/v1/release", body), Math.max(1_000, this.trustedMs() - this.since.ms));
    }

    /** Gives the lock back from a page that is being closed: nobody hears how that ended, and at worst it runs out. */
    releaseOnClose(): void {
        if (this.ended.signal.aborted) return;
        this.ended.abort();
        this.calls.sendOnClose("/v1/release", { name: this.name, lease: this.lease });
    }

    /** Hands the lock over without a gap. What is returned is the new holder's lease, a secret. */
    async transfer(to: string, more: TransferOptions = {}): Promise<Grant> {
        return (await this.transferTo(to, more)).grant;
    }

    /** Hands the lock to another screen of its owner without a gap, and keeps it: a new lease with a new token. */
    async switchTo(holder: string, more: TransferOptions = {}): Promise<Hold> {
        const { grant, asked } = await this.transferTo(holder, more);
        return new Hold(this.calls, grant, asked, this.ttlMs, this.renewal);
    }

    private async transferTo(to: string, more: TransferOptions): Promise<{ grant: Grant; asked: Elapsed }> {
        const left = this.leftMs;
        if (left <= 0) throw this.lossError ?? withoutAnswer("refused", "This lease was given back.");
        const moved = await transferred(this.calls, this.name, this.lease, to, more, left);
        this.ended.abort();
        return moved;
    }

    /** From when it was granted or renewed until its end, both by the store's clock. */
    private trustedMs(): number {
        const { expires_at, acquired_at, renewed_at } = this.current;
        const span = Date.parse(expires_at ?? "") - Date.parse(renewed_at ?? acquired_at ?? "");
        if (!Number.isFinite(span)) return this.ttlMs ?? 0;
        return Math.min(span, this.ttlMs ?? span);
    }

    private async keep(): Promise<void> {
        while (this.isHeld) {
            // Short steps, because a timer does not count the time of a sleeping machine.
            await pause(
                Math.max(10, Math.min(this.leftMs, this.trustedMs() / 3 - this.since.ms, 5_000)),
                this.ended.signal,
            );
            this.lookAtClock();
            if (!this.isHeld || this.since.ms < this.trustedMs() / 3) continue;
            try {
                await this.renew();
            } catch {
                // Lost, and said so; or not renewed, and tried again until the lease can no longer be trusted.
                await pause(Math.min(this.trustedMs() / 10, 5_000, this.leftMs), this.ended.signal);
            }
        }
    }

    /** Notices that the lease ran out, also after the machine slept. */
    private async watchClock(): Promise<void> {
        while (this.isHeld) await pause(Math.max(10, Math.min(this.leftMs, 5_000)), this.ended.signal);
    }

    private lookAtClock(): void {
        if (this.lossError !== null || this.ended.signal.aborted || this.since.ms < this.trustedMs()) return;
        this.lose(
            new HoldfastError("refused", 0, {
                code: "E_LOCK_EXPIRED",
                message: `The lease of ${this.name} ran out.`,
            }),
        );
        // By this machine's clock: if that was set, the daemon would keep the lock for a lease that nobody trusts.
        this.calls.post("/v1/release", { name: this.name, lease: this.lease }).catch(() => undefined);
    }

    private lose(error: HoldfastError): void {
        if (this.lossError !== null || this.ended.signal.aborted) return;
        this.lossError = error;
        this.ended.abort();
        this.lossController.abort(error);
    }
}
