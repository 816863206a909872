import type { PageChange } from "./browser.js";
import type { AcquireOptions, Question } from "./client.js";
import type { Lock } from "./documents.js";
import type { Asked, EditMode, EditOptions, EditView, Loss, Obstacle } from "./edit_view.js";
import { HoldfastError } from "./errors.js";
import { Elapsed, type Hold } from "./hold.js";
import { LockWatch } from "./lock_watch.js";
import { OwnLeases } from "./own_leases.js";
import { askToYield, whenAskedToYield } from "./yielding.js";

/** Between two looks at the clock. A machine that slept shows by a longer time. */
const tickMs = 2_000;
const sleptMs = 15_000;

/**
 * One screen that can be edited by one tab at a time.
 *
 * Between two calls nothing is taken for granted: the lock is watched, a lease is trusted only as long as its time
 * lasts, and after the page was away the daemon is asked before the text can be typed into again. A lease is renewed
 * only while there is input, so an idle tab loses it, and the first input after a pause renews it at once.
 */
export class EditSession {
    private mode: EditMode = "viewing";
    private hold: Hold | null = null;
    private loss: Loss | null = null;
    private failure: HoldfastError | null = null;
    private request: Asked | null = null;
    private asked: Question | null = null;
    /** When the page came back, as long as the daemon has not confirmed since that the lease is still there. */
    private inDoubtSince: number | null = null;
    private isHandedOver = false;
    private wasLeft = false;
    private isRenewing = false;
    private shownStale = false;
    private shownOwn = false;
    /** Input that no renewal has followed yet. */
    private hasInput = false;
    private sinceRenewal = new Elapsed();
    private tickedAt = Date.now();
    private holder: string;
    private readonly own: OwnLeases;
    private readonly watch: LockWatch;
    private readonly exclusion: LockWatch | null;
    private readonly ended = new AbortController();
    private readonly timer: ReturnType<typeof setInterval>;

    constructor(private readonly options: EditOptions) {
        const { client, feed, browser, name, excludedBy } = options;
        this.holder = options.holder;
        this.own = new OwnLeases(browser.storage, options.user);
        this.watch = new LockWatch(client, feed, name, () => this.look());
        this.exclusion = excludedBy ? new LockWatch(client, feed, excludedBy, () => this.changed()) : null;
        this.timer = setInterval(() => this.tick(), tickMs);
        const stopWatching = browser.page?.onChange((change) => this.pageChanged(change));
        const stopYielding =
            browser.channel &&
            whenAskedToYield(
                browser.channel,
                () => this.hold?.lockId,
                () => this.yieldTo(),
            );
        this.ended.signal.addEventListener("abort", () => {
            clearInterval(this.timer);
            stopWatching?.();
            stopYielding?.();
            this.watch.close();
            this.exclusion?.close();
        });
    }

    get view(): EditView {
        const { lock, isReachable } = this.watch.seen;
        const obstacle = this.obstacle();
        const mayGoOn = isReachable || this.options.whenUnreachable === "warn";
        const mayEdit =
            this.mode === "editing" && (this.hold?.isHeld ?? false) && this.inDoubtSince === null && mayGoOn;
        return {
            mode: this.mode,
            lock,
            mayType: (mayEdit || this.mode === "unguarded") && obstacle?.kind !== "propagating",
            obstacle,
            loss: this.loss,
            failure: this.failure,
            request: this.request,
            question: this.mode === "editing" && lock?.lock_id === this.hold?.lockId ? (lock?.override ?? null) : null,
            isReachable,
        };
    }

    /** The lease to save under: `hold.headers`. Null while nothing is held. */
    get lease(): Hold | null {
        return this.hold?.isHeld ? this.hold : null;
    }

    /** Takes the lock, if nobody has it. */
    edit(): Promise<void> {
        const { client, name } = this.options;
        return this.attempt(() => client.acquire(name, this.wish()));
    }

    /** Goes on here with what another tab of this browser edits. That tab keeps its draft, if it is awake. */
    takeFromOwnTab(): Promise<void> {
        const { client, name, browser } = this.options;
        return this.attempt(async () => {
            const own = this.own.get(name);
            if (own === null) return client.acquire(name, this.wish());
            if (browser.channel) await askToYield(browser.channel, own.lockId);
            try {
                return await client.takeFrom(name, own.lease, this.holder, { ...this.user(), renewal: "by_owner" });
            } catch (error) {
                // It ended meanwhile.
                if (error instanceof HoldfastError && error.ending === "refused")
                    return client.acquire(name, this.wish());
                throw error;
            }
        });
    }

    /** Takes the lock from the holder that was seen, if that has been idle for long and still is. */
    takeOverStale(): Promise<void> {
        const { client, name } = this.options;
        const { lock } = this.watch.seen;
        const takeOver = { lockId: lock?.lock_id ?? "", renewSeq: lock?.renew_seq ?? 0 };
        return this.attempt(() => client.acquire(name, { ...this.wish(), ...(lock?.lock_id ? { takeOver } : {}) }));
    }

    /** Hands the lock from one screen of this tab to the next, without a gap. */
    async switchTo(holder: string): Promise<void> {
        this.holder = holder;
        const { hold } = this;
        if (!hold) return;
        await this.attempt(() => hold.switchTo(holder, this.user()), hold);
    }

    /** Gives the lock back. */
    async stop(): Promise<void> {
        const { hold } = this;
        this.leave();
        this.changed();
        try {
            await hold?.release();
        } catch {
            // It ends by itself; the lock is shown as it is.
        }
        void this.watch.read();
    }

    /** Asks the holder, or somebody who may decide it, for the lock. */
    async requestOverride(reason: string, validForMs?: number): Promise<void> {
        const { client, name } = this.options;
        this.failure = null;
        try {
            const more = { ...this.user(), ...(validForMs === undefined ? {} : { validForMs }) };
            this.asked = await client.requestOverride(name, { holder: this.holder, reason, ...more });
            this.request = { state: "pending", expiresAt: this.asked.expiresAt };
        } catch (error) {
            this.fail(error);
        }
        this.changed();
        void this.watch.read();
    }

    /** Answers who asks for the lock that is held here. */
    async answer(question: string, verdict: "approve" | "deny", reason = ""): Promise<void> {
        const { hold } = this;
        if (!hold) return;
        try {
            if (verdict === "approve") await this.options.beforeYield?.();
            this.isHandedOver = verdict === "approve";
            const { client, name } = this.options;
            await client.answerOverride(name, question, { verdict, lease: hold.lease, reason });
        } catch (error) {
            this.isHandedOver = false;
            this.fail(error);
        }
        this.changed();
        void this.watch.read();
    }

    /** The user has seen how the last editing, attempt or request ended. */
    dismiss(): void {
        this.loss = null;
        this.failure = null;
        if (this.request?.state !== "pending") this.request = null;
        this.changed();
    }

    /** Ends the session, and gives the lock back. */
    async close(): Promise<void> {
        this.ended.abort();
        const { hold } = this;
        this.leave();
        await hold?.release().catch(() => undefined);
    }

    private user(): { user?: string } {
        const { user } = this.options;
        return user === undefined ? {} : { user };
    }

    private wish(): AcquireOptions {
        const { excludedBy } = this.options;
        const wish = { ...this.user(), holder: this.holder, operation: "edit", renewal: "by_owner" } as const;
        return excludedBy ? { ...wish, unlessHeld: [excludedBy] } : wish;
    }

    private obstacle(): Obstacle | null {
        const { lock, isReachable, askedAt } = this.watch.seen;
        if (this.options.mayEdit === false) return { kind: "not_permitted" };
        const exclusion = this.exclusion?.seen.lock;
        if (exclusion?.state === "held") return { kind: "propagating", lock: exclusion };
        if (this.mode !== "editing" && lock?.state === "held" && lock.lock_id !== this.hold?.lockId) {
            const { staleAfterMs, name } = this.options;
            const seenIdleMs = Date.parse(lock.as_of) - Date.parse(lock.renewed_at ?? lock.as_of);
            const idleMs = seenIdleMs + performance.now() - askedAt;
            const isOwn = this.own.get(name)?.lockId === lock.lock_id;
            return { kind: "held", lock, isOwn, isStale: staleAfterMs !== undefined && idleMs >= staleAfterMs };
        }
        return isReachable ? null : { kind: "unreachable" };
    }

    /** Makes a lease that `take` brings the one of this screen. `before` is the one that it replaces. */
    private async attempt(take: () => Promise<Hold>, before: Hold | null = null): Promise<void> {
        if (this.mode === "asking" || (this.hold !== null && before === null)) return;
        this.mode = "asking";
        this.failure = null;
        this.loss = null;
        this.changed();
        try {
            const hold = await take();
            if (this.ended.signal.aborted) return void hold.release().catch(() => undefined);
            // Kept before anything else, so that another tab can go on with it whatever happens here.
            const { lockId, lease, name } = hold;
            this.own.put(name, { lockId, lease, tab: this.options.tab });
            this.hold = hold;
            this.sinceRenewal = new Elapsed();
            this.hasInput = false;
            hold.signal.addEventListener("abort", () => this.lost(hold));
            await this.options.prepare?.(hold);
            // A page that was closed meanwhile has given it back.
            if (this.hold !== hold) return;
            if (!hold.isHeld) return this.lost(hold);
            this.mode = "editing";
            this.asked = null;
            this.request = null;
        } catch (error) {
            const { hold } = this;
            this.leave();
            void hold?.release().catch(() => undefined);
            const { ending } = this.fail(error);
            // Nobody answers: the watch goes on asking, and tells when somebody does.
            if (ending !== "refused" && this.options.whenUnreachable === "warn") this.mode = "unguarded";
        }
        this.changed();
        void this.watch.read();
    }

    private fail(error: unknown): HoldfastError {
        if (!(error instanceof HoldfastError)) throw error;
        this.failure = error;
        return error;
    }

    /** Forgets the lease, and that there was one. */
    private leave(): void {
        if (this.hold) this.own.remove(this.hold.name, this.hold.lockId);
        this.hold = null;
        this.mode = "viewing";
        this.inDoubtSince = null;
        this.isHandedOver = false;
    }

    private lost(hold: Hold): void {
        if (this.hold !== hold) return;
        const kind = this.isHandedOver ? "handed_over" : hold.loss?.code === "E_LOCK_EXPIRED" ? "expired" : "taken";
        this.leave();
        const goesOn = kind === "expired" && !this.watch.seen.isReachable && this.options.whenUnreachable === "warn";
        if (goesOn) this.mode = "unguarded";
        else this.loss = { kind, error: hold.loss };
        this.changed();
        void this.watch.read();
    }

    /** The lock was seen anew. */
    private look(): void {
        const { lock, isReachable, refusal, askedAt } = this.watch.seen;
        const { hold } = this;
        if (hold && lock && this.mode === "editing") {
            const isThere = lock.lock_id === hold.lockId && lock.state === "held";
            if (isThere && this.inDoubtSince !== null && askedAt >= this.inDoubtSince) this.inDoubtSince = null;
            // What was read may be older than the lease: only the daemon's answer to a renewal takes it away.
            else if (!isThere && lock.seq >= hold.lock.seq) void hold.renew().catch(() => undefined);
        }
        if (this.mode === "unguarded" && isReachable && !refusal) {
            this.mode = "viewing";
            void this.edit();
        }
        if (lock) void this.followRequest(lock);
        this.changed();
    }

    private async followRequest(lock: Lock): Promise<void> {
        const { asked } = this;
        if (!asked || lock.seq < asked.seq || lock.override?.lock_id === asked.lockId) return;
        this.asked = null;
        const { client, name } = this.options;
        if (lock.lock_id === asked.lockId)
            return this.attempt(() => client.adopt(name, asked.lease, { renewal: "by_owner" }));
        // Whoever waited for an answer wants it when it is free.
        if (lock.state !== "held") return this.edit();
        const events = await client.history(name).catch(() => []);
        const denial = events.find(({ event, lock_id }) => event === "override_denied" && lock_id === asked.lockId);
        this.request = denial ? { state: "denied", by: denial.actor, reason: denial.reason } : { state: "lapsed" };
        this.changed();
    }

    private pageChanged(change: PageChange): void {
        if (change === "input") this.input();
        else if (change === "left") this.left();
        else if (change === "returned") this.returned();
        else if (change === "stored") this.ownLeaseChanged();
        else if (change !== "hidden") this.lookAgain();
    }

    /** A tab of this browser took or left the lock: what is seen of it may have come before this. */
    private ownLeaseChanged(): void {
        const obstacle = this.obstacle();
        if (obstacle?.kind === "held" && obstacle.isOwn !== this.shownOwn) this.changed();
    }

    private lookAgain(): void {
        void this.watch.read();
        void this.exclusion?.read();
    }

    private input(): void {
        if (this.mode !== "editing") return;
        this.hasInput = true;
        this.renewIfDue();
    }

    private left(): void {
        const { hold } = this;
        if (!hold) return;
        this.wasLeft = true;
        this.leave();
        hold.releaseOnClose();
    }

    private returned(): void {
        if (this.hold) {
            this.inDoubtSince = performance.now();
            this.changed();
        }
        this.lookAgain();
        // The lock was given back when the page was left.
        if (this.wasLeft) void this.edit();
        this.wasLeft = false;
    }

    private tick(): void {
        const now = Date.now();
        const slept = now - this.tickedAt > sleptMs && this.options.browser.page?.isHidden !== true;
        this.tickedAt = now;
        if (slept) this.returned();
        else this.renewIfDue();
        const obstacle = this.obstacle();
        if (obstacle?.kind === "held" && obstacle.isStale !== this.shownStale) this.changed();
    }

    private renewIfDue(): void {
        const { hold } = this;
        if (!hold || this.isRenewing || !this.hasInput || this.mode !== "editing") return;
        const everyMs = this.options.renewEveryMs ?? (hold.lock.ttl_ms ?? 60_000) / 6;
        if (this.sinceRenewal.ms < everyMs) return;
        const asked = new Elapsed();
        this.isRenewing = true;
        this.hasInput = false;
        hold.renew()
            .then(() => (this.sinceRenewal = asked))
            .catch(() => (this.hasInput = true))
            .finally(() => (this.isRenewing = false));
    }

    /** Another tab goes on with what is edited here. */
    private async yieldTo(): Promise<void> {
        await this.options.beforeYield?.();
        this.isHandedOver = true;
    }

    private changed(): void {
        const obstacle = this.obstacle();
        this.shownStale = obstacle?.kind === "held" && obstacle.isStale;
        this.shownOwn = obstacle?.kind === "held" && obstacle.isOwn;
        if (!this.ended.signal.aborted) this.options.onChange?.(this.view);
    }
}
