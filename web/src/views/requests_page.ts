import type { Lock, Override } from "../../../clients/js/src/documents";
import { button, h, replace, untrusted } from "../base/dom";
import { lockAddress } from "../base/router";
import { plural, printable } from "../base/text";
import { instant, seconds, words } from "../base/time";
import { holderWords, openQuestion } from "../model/locks";
import { mayAdminister } from "../model/rights";
import { answer } from "./actions";
import type { Context, Page } from "./context";
import { emptyState, holder, loading, time } from "./parts";

export function openRequests(locks: Iterable<Lock>, now: number): Array<{ lock: Lock; question: Override }> {
    const found: Array<{ lock: Lock; question: Override }> = [];
    for (const lock of locks) {
        const question = openQuestion(lock, now);
        if (question) found.push({ lock, question });
    }
    return found.sort((a, b) => (a.question.asked_at < b.question.asked_at ? -1 : 1));
}

/** The questions for locks that wait for an answer, the oldest first. */
export class RequestsPage implements Page {
    readonly title = "Requests";
    readonly element: HTMLElement;
    private readonly list = h("div", { class: "requests" });
    private readonly bar = h("div", { class: "selection", attrs: { hidden: true } });
    private readonly chosen = new Set<string>();
    private shown = "";

    constructor(private readonly context: Context) {
        this.element = h(
            "div",
            { class: "page" },
            h(
                "div",
                { class: "page-head" },
                h("h1", {}, "Requests"),
                h("p", { class: "summary" }, "Somebody needs a lock that another holds."),
            ),
            this.bar,
            this.list,
        );
    }

    update(): void {
        const { live } = this.context;
        const now = live.clock.now();
        const open = openRequests(live.locks.values(), now);
        for (const name of this.chosen) if (!open.some(({ lock }) => lock.name === name)) this.chosen.delete(name);
        const shows =
            `${live.link.state} ${open
                .map(
                    ({ lock, question }) =>
                        `${lock.name} ${lock.lock_id} ${question.lock_id} ` +
                        seconds((instant(question.expires_at) ?? now) - now),
                )
                .join("\n")}` + ` ${[...this.chosen].join("\n")}`;
        if (shows === this.shown) return;
        this.shown = shows;
        const focused = document.activeElement?.getAttribute("data-focus");
        if (live.link.state === "loading") replace(this.list, loading(3));
        else if (open.length === 0)
            replace(
                this.list,
                emptyState(
                    "No request is open.",
                    h("p", {}, "They come from ", h("code", {}, "holdfast override request NAME"), "."),
                ),
            );
        else replace(this.list, ...open.map((each) => this.card(each.lock, each.question, now)));
        this.bar.hidden = this.chosen.size === 0;
        const done = (): void => {
            this.chosen.clear();
            this.update();
        };
        replace(
            this.bar,
            h("strong", {}, `${plural(this.chosen.size, "request")} selected`),
            button("Approve…", () => answer(this.context, "approve", this.chosenLocks(), done), "", {
                "data-focus": "approve",
            }),
            button("Deny…", () => answer(this.context, "deny", this.chosenLocks(), done), "", {
                "data-focus": "deny",
            }),
            button("Clear", done, "plain", { "data-focus": "clear" }),
        );
        if (focused && document.activeElement?.getAttribute("data-focus") !== focused)
            this.element
                .querySelector<HTMLElement>(`[data-focus="${CSS.escape(focused)}"]`)
                ?.focus({ preventScroll: true });
    }

    private card(lock: Lock, question: Override, now: number): HTMLElement {
        const check = h("input", {
            attrs: {
                type: "checkbox",
                "aria-label": `Select the request for ${printable(lock.name)}`,
                "data-focus": `select ${lock.name}`,
            },
            on: {
                change: () => {
                    if (check.checked) this.chosen.add(lock.name);
                    else this.chosen.delete(lock.name);
                    this.update();
                },
            },
        });
        check.checked = this.chosen.has(lock.name);
        const isAdmin = mayAdminister(this.context.session, lock.name);
        return h(
            "article",
            { class: "card request" },
            isAdmin && check,
            h(
                "div",
                { class: "request-body" },
                h(
                    "h2",
                    {},
                    h(
                        "a",
                        { attrs: { href: lockAddress(lock.name), "data-focus": `link ${lock.name}` } },
                        untrusted(lock.name),
                    ),
                ),
                h(
                    "p",
                    {},
                    h("strong", {}, untrusted(question.user ?? holderWords(question.holder))),
                    ` asks for it for ${words(question.ttl_ms)}, since `,
                    time(question.asked_at, now),
                ),
                question.reason !== null && h("blockquote", {}, untrusted(question.reason)),
                h(
                    "p",
                    { class: "hint" },
                    "Held by ",
                    holder(lock),
                    ` · token ${lock.token} · open for another `,
                    seconds((instant(question.expires_at) ?? now) - now),
                ),
            ),
            isAdmin &&
                h(
                    "div",
                    { class: "actions" },
                    button("Approve…", () => answer(this.context, "approve", [lock]), "", {
                        "data-focus": `approve ${lock.name}`,
                    }),
                    button("Deny…", () => answer(this.context, "deny", [lock]), "", {
                        "data-focus": `deny ${lock.name}`,
                    }),
                ),
        );
    }

    private chosenLocks(): Lock[] {
        return [...this.chosen].flatMap((name) => this.context.live.locks.get(name) ?? []);
    }
}
