import { HoldfastError } from "../../../clients/js/src/errors";
import type { AuditEvent } from "../../../clients/js/src/documents";
import { button, h, icon, replace, setText, untrusted, type Child } from "../base/dom";
import { plural } from "../base/text";
import { ago, instant, moment, seconds, words } from "../base/time";
import { checkChain, type ChainCheck } from "../model/chain";
import { holderWords, openQuestion, stateAt } from "../model/locks";
import { LockLog } from "../model/lock_log";
import { since, timelineOf, usualHoldOf, type UsualHold } from "../model/timeline";
import { mayAdminister, roleFor } from "../model/rights";
import { answer, breakLocks, releaseLock } from "./actions";
import type { Context, Page } from "./context";
import { eventTable } from "./event_table";
import { facts, holder, loading, notice, stateBadge, time } from "./parts";
import { timelinePicture } from "./timeline_picture";
import { UsualHoldView } from "./usual_hold";

const spans: ReadonlyArray<readonly [string, number]> = [
    ["All", Infinity],
    ["Day", 86_400_000],
    ["Hour", 3_600_000],
    ["10 min", 600_000],
];

function chainWords(check: ChainCheck): string {
    if (check.state === "broken") return `The chain is broken at event ${check.seq}: ${check.why}.`;
    if (check.state === "impossible") return `The chain was not checked. ${check.why}`;
    const what = check.isWhole ? "Whole chain intact" : "Newest part of the chain intact";
    return `${what}: ${plural(check.events, "event")}, checked in this browser.`;
}

/** One lock: how it is, who waits, and what happened to it. */
export class LockPage implements Page {
    readonly title: string;
    readonly element: HTMLElement;
    private readonly known: LockLog;
    private usualHold: UsualHold | null = null;
    private check: ChainCheck | null = null;
    private isReading = false;
    private mustReadAgain = false;
    private isClosed = false;
    private readonly head = h("div", { class: "lock-head" });
    private readonly state = h("div", { class: "cards cards-lock" });
    private readonly request = h("div", {});
    private readonly problem = h("div", {});
    private readonly picture = h("div", { class: "picture" });
    private readonly log = h("div", {});
    private readonly chain = h("p", { class: "chain", attrs: { role: "status" } });
    private readonly countdown = h("strong", { class: "figure" });
    private readonly heldFor = h("strong", { class: "figure" });
    private readonly usual = new UsualHoldView();
    private span = Infinity;

    constructor(
        private readonly context: Context,
        private readonly name: string,
    ) {
        this.title = name;
        this.known = new LockLog(name, context.live.clock);
        this.element = h(
            "div",
            { class: "page" },
            h("a", { class: "back", attrs: { href: "#/" } }, icon("back"), "All locks"),
            this.head,
            this.problem,
            this.request,
            this.state,
            h(
                "section",
                { class: "panel" },
                h("div", { class: "panel-head" }, h("h2", {}, "Timeline"), this.spanChoice()),
                this.picture,
            ),
            h(
                "section",
                { class: "panel" },
                h("div", { class: "panel-head" }, h("h2", {}, "Audit log"), this.chain),
                this.log,
            ),
        );
        replace(this.head, h("h1", {}, untrusted(name)));
        replace(this.state, loading(2));
        replace(this.picture, loading(2));
        void this.read();
    }

    close(): void {
        this.isClosed = true;
    }

    reconnected(): void {
        void this.read(() => this.known.readAnew());
    }

    event(event: AuditEvent): void {
        if (event.name === this.name) void this.read();
    }

    update(): void {
        const { lock } = this.known;
        if (!lock) return;
        const { live } = this.context;
        const now = live.clock.now();
        const listed = live.locks.get(this.name);
        // The queue is in no event.
        if (listed && listed.seq === lock.seq && listed.waiters !== lock.waiters) {
            lock.waiters = listed.waiters;
            this.showState(now);
        }
        const from = instant(lock.acquired_at);
        const end = instant(lock.expires_at);
        if (from !== null) setText(this.heldFor, words(Math.max(1000, now - from)));
        if (end !== null) setText(this.countdown, end > now ? seconds(end - now) : ago(now - end));
        this.usual.update(this.usualHold, from === null ? null : now - from);
        const state = stateAt(lock, now);
        if (this.head.dataset["state"] !== state) this.showHead(now);
    }

    private async read(reading = (): Promise<void> => this.known.read()): Promise<void> {
        if (this.isReading) {
            this.mustReadAgain = true;
            return;
        }
        this.isReading = true;
        try {
            await reading();
            if (this.isClosed) return;
            replace(this.problem);
            this.show();
            await this.verify();
        } catch (error) {
            if (!this.isClosed) this.failed(error);
        } finally {
            this.isReading = false;
        }
        if (!this.mustReadAgain || this.isClosed) return;
        this.mustReadAgain = false;
        void this.read();
    }

    private failed(error: unknown): void {
        const text = error instanceof HoldfastError ? error.message : "The answer of the daemon cannot be used.";
        replace(
            this.problem,
            notice(
                "error",
                "This lock cannot be shown",
                h("p", {}, untrusted(text)),
                button("Try again", () => void this.read()),
            ),
        );
        if (!this.known.lock) {
            replace(this.state);
            replace(this.picture, h("p", { class: "faint" }, "Nothing is known yet."));
        }
    }

    private async verify(): Promise<void> {
        const { lock } = this.known;
        if (!lock) return;
        this.check = await checkChain(this.known.events, lock);
        if (!this.isClosed && this.known.lock === lock) this.showChain();
    }

    private show(): void {
        const now = this.context.live.clock.now();
        this.showHead(now);
        this.showState(now);
        this.showRequest(now);
        this.showPicture(now);
        this.showLog(now);
        this.update();
    }

    private showHead(now: number): void {
        const { lock } = this.known;
        if (!lock) return;
        const state = stateAt(lock, now);
        this.head.dataset["state"] = state;
        const isAdmin = mayAdminister(this.context.session, this.name);
        const isHeld = lock.lock_id !== null;
        const focused = document.activeElement?.getAttribute("data-action");
        replace(
            this.head,
            h("div", { class: "lock-title" }, h("h1", {}, untrusted(lock.name)), stateBadge(state)),
            isHeld &&
                h(
                    "div",
                    { class: "actions" },
                    ["holder", "admin"].includes(roleFor(this.context.session, this.name)) &&
                        button("Release…", () => releaseLock(this.context, lock), "", { "data-action": "release" }),
                    isAdmin &&
                        button("Break…", () => breakLocks(this.context, [lock], () => void this.read()), "danger", {
                            "data-action": "break",
                        }),
                ),
        );
        if (focused) this.head.querySelector<HTMLElement>(`[data-action="${focused}"]`)?.focus();
    }

    private showState(now: number): void {
        const { lock } = this.known;
        if (!lock) return;
        if (lock.lock_id === null) {
            const last = this.known.events
                .filter((event) => event.event === "released" || event.event === "broken")
                .pop();
            replace(
                this.state,
                h(
                    "div",
                    { class: "card card-wide" },
                    h("p", {}, lock.seq === 0 ? "This lock was never used." : "Nobody holds this lock."),
                    facts(
                        ["Highest token", String(lock.token)],
                        [
                            "Last",
                            last
                                ? h(
                                      "span",
                                      {},
                                      `${last.event} by `,
                                      untrusted(last.actor ?? last.user ?? holderWords(last.holder)),
                                      `, ${moment(Date.parse(last.at), now)}`,
                                  )
                                : null,
                        ],
                    ),
                ),
            );
            return;
        }
        const meta = Object.entries(lock.meta);
        replace(
            this.state,
            h(
                "div",
                { class: "card" },
                h("h2", {}, "Holder"),
                h("div", { class: "figure-line" }, holder(lock)),
                facts(
                    ["Operation", lock.operation !== null && untrusted(lock.operation)],
                    ["Reason", lock.reason !== null && untrusted(lock.reason)],
                    ...meta.map(([key, value]): [Child, Child] => [untrusted(key), untrusted(value)]),
                    ["Token", h("span", { class: "number" }, String(lock.token))],
                    ["Lease", h("code", { class: "id" }, lock.lock_id)],
                ),
            ),
            h(
                "div",
                { class: "card" },
                h("h2", {}, "Held for"),
                h("div", { class: "figure-line" }, this.heldFor),
                this.usual.element,
                facts(
                    ["Since", time(lock.acquired_at, now)],
                    [
                        "Renewed",
                        lock.renew_seq
                            ? h("span", {}, time(lock.renewed_at, now), ` (${plural(lock.renew_seq, "time")})`)
                            : "never",
                    ],
                ),
            ),
            h(
                "div",
                { class: "card" },
                h("h2", {}, stateAt(lock, now) === "expired" ? "Ran out" : "Expires in"),
                h("div", { class: "figure-line" }, this.countdown),
                facts(
                    ["At", time(lock.expires_at, now)],
                    ["No longer than", lock.max_until !== null && time(lock.max_until, now)],
                    ["Each renewal", lock.ttl_ms !== null && words(lock.ttl_ms)],
                ),
            ),
            h(
                "div",
                { class: "card" },
                h("h2", {}, "Queue"),
                h(
                    "div",
                    { class: "figure-line" },
                    h("strong", { class: "figure" }, String(lock.waiters)),
                    h("span", { class: "faint" }, lock.waiters === 1 ? "waiter" : "waiters"),
                ),
            ),
        );
    }

    private showRequest(now: number): void {
        const { lock } = this.known;
        const question = lock && openQuestion(lock, now);
        if (!lock || !question) {
            replace(this.request);
            return;
        }
        replace(
            this.request,
            h(
                "section",
                { class: "notice notice-warning" },
                h(
                    "p",
                    { class: "notice-title" },
                    untrusted(question.user ?? holderWords(question.holder)),
                    " asks for this lock",
                ),
                question.reason !== null && h("p", {}, "“", untrusted(question.reason), "”"),
                h(
                    "p",
                    { class: "hint" },
                    "For ",
                    words(question.ttl_ms),
                    ", asked at ",
                    time(question.asked_at, now),
                    ", open until ",
                    time(question.expires_at, now),
                    ".",
                ),
                mayAdminister(this.context.session, this.name) &&
                    h(
                        "div",
                        { class: "actions" },
                        button("Approve…", () => answer(this.context, "approve", [lock], () => void this.read())),
                        button("Deny…", () => answer(this.context, "deny", [lock], () => void this.read())),
                    ),
            ),
        );
    }

    private showPicture(now: number): void {
        const { lock } = this.known;
        if (!lock) return;
        const question = openQuestion(lock, now);
        const questionUntil = question ? instant(question.expires_at) : null;
        const whole = timelineOf(this.known.events, now, instant(lock.expires_at), questionUntil);
        this.usualHold = usualHoldOf(whole.holds);
        if (this.known.events.length === 0) {
            replace(this.picture, h("p", { class: "faint" }, "Nothing has happened to this lock."));
            return;
        }
        const width = Math.max(300, this.picture.clientWidth || 900);
        replace(
            this.picture,
            timelinePicture(this.span === Infinity ? whole : since(whole, now - this.span), width, now),
        );
    }

    private showLog(now: number): void {
        const { lock } = this.known;
        if (!lock) return;
        const oldest = this.known.events[0]?.seq ?? lock.seq + 1;
        const more = oldest - lock.pruned_seq - 1;
        replace(
            this.log,
            eventTable(this.known.events, now),
            more > 0 &&
                button(
                    `Read ${plural(more, "older event")} and check the whole chain`,
                    () => void this.read(() => this.known.readAnew(true)),
                ),
            lock.pruned_seq > 0 && h("p", { class: "hint" }, `Events up to ${lock.pruned_seq} were pruned.`),
        );
    }

    private showChain(): void {
        const { check } = this;
        if (!check) return;
        const isGood = check.state === "intact";
        this.chain.className = `chain chain-${check.state}`;
        const text = chainWords(check);
        if (this.chain.textContent !== text) replace(this.chain, icon(isGood ? "check" : "cross"), text);
    }

    private spanChoice(): HTMLElement {
        const buttons = spans.map(([label, length]) =>
            button(
                label,
                () => {
                    this.span = length;
                    for (const each of buttons)
                        each.setAttribute(
                            "aria-pressed",
                            String(each === buttons[spans.findIndex(([, l]) => l === length)]),
                        );
                    this.showPicture(this.context.live.clock.now());
                },
                "",
                { "aria-pressed": length === Infinity ? "true" : "false" },
            ),
        );
        return h(
            "div",
            { class: "segments", attrs: { role: "group", "aria-label": "Part of the timeline" } },
            ...buttons,
        );
    }
}
