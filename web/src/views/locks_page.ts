import { button, h, icon, replace, setText } from "../base/dom";
import { viewAddress } from "../base/router";
import { plural, printable } from "../base/text";
import { instant } from "../base/time";
import { openQuestion, prefixes, selected, stateAt, type SortKey, type View } from "../model/locks";
import type { Lock } from "../../../clients/js/src/documents";
import { mayAdminister } from "../model/rights";
import { answer, breakLocks } from "./actions";
import type { Context, Page } from "./context";
import { emptyState, loading, notice } from "./parts";
import { LockTable } from "./table";

/** All locks that somebody holds. */
export class LocksPage implements Page {
    readonly title = "Locks";
    readonly element: HTMLElement;
    private readonly search = h("input", {
        attrs: {
            type: "search",
            placeholder: "Name, holder, operation, reason",
            "aria-label": "Search",
            name: "search",
        },
        on: { input: () => this.look({ ...this.view, search: this.search.value }) },
    });
    private readonly prefix = h("select", {
        attrs: { "aria-label": "Prefix", name: "prefix" },
        on: { change: () => this.look({ ...this.view, prefix: this.prefix.value }) },
    });
    private readonly everybody = button("All", () => this.look({ ...this.view, mine: false }));
    private readonly mine = button("My locks", () => this.look({ ...this.view, mine: true }));
    private readonly whoami: HTMLElement;
    private readonly summary = h("p", { class: "summary" });
    private readonly bar = h("div", { class: "selection", attrs: { hidden: true } });
    private readonly content = h("div", { class: "table-place" });
    private readonly problem = h("div", {});
    private readonly table: LockTable;
    private readonly chosen = new Set<string>();
    private shown: "table" | "loading" | "empty" | "" = "";
    private shownPrefixes = "";

    constructor(
        private readonly context: Context,
        private view: View,
    ) {
        this.table = new LockTable(
            {
                sort: (key) => this.sort(key),
                select: (names, isSelected) => this.select(names, isSelected),
            },
            () => context.live.clock.now(),
        );
        const me = h("input", {
            attrs: { "aria-label": "Your name, as in user or holder", placeholder: "Your name", name: "me", size: 14 },
            on: {
                input: () => {
                    context.setMe(me.value.trim());
                    this.update();
                },
            },
        });
        me.value = context.me();
        this.whoami = h("label", { class: "whoami" }, "I am", me);
        this.search.value = view.search;
        this.element = h(
            "div",
            { class: "page page-wide" },
            h("div", { class: "page-head" }, h("h1", {}, "Locks"), this.summary),
            h(
                "div",
                { class: "toolbar", attrs: { role: "search" } },
                h(
                    "div",
                    { class: "search" },
                    icon("search"),
                    this.search,
                    h("kbd", { attrs: { "aria-hidden": "true" } }, "/"),
                ),
                this.prefix,
                h(
                    "div",
                    { class: "segments", attrs: { role: "group", "aria-label": "Whose locks" } },
                    this.everybody,
                    this.mine,
                ),
                this.whoami,
            ),
            this.problem,
            this.bar,
            this.content,
        );
        this.table.sortedBy(view.sort, view.descending);
    }

    close(): void {
        this.table.close();
    }

    focusSearch(): void {
        this.search.focus();
        this.search.select();
    }

    update(): void {
        const { live } = this.context;
        const now = live.clock.now();
        const me = this.context.me();
        const listed = selected(live.locks.values(), this.view, me);
        for (const name of this.chosen) if (!live.locks.has(name)) this.chosen.delete(name);
        this.updateToolbar(now);
        this.updateSelection(now);
        this.showProblem();
        if (live.link.state === "loading") this.show("loading", () => loading(8));
        else if (listed.length === 0) this.show("empty", () => this.nothing(me), true);
        else {
            this.show("table", () => this.table.element);
            this.table.show(listed, this.chosen, now);
        }
    }

    private showProblem(): void {
        const damaged = [...this.context.live.locks.values()].filter((lock) => lock.state === "unreadable").length;
        const title = `${plural(damaged, "lock")} cannot be read`;
        if (damaged === 0) replace(this.problem);
        else if (!this.problem.textContent?.startsWith(title))
            replace(
                this.problem,
                notice(
                    "error",
                    title,
                    h(
                        "p",
                        {},
                        "Nobody gets it meanwhile. Look at it with ",
                        h("code", {}, "holdfast doctor"),
                        ", and mend it with ",
                        h("code", {}, "holdfast repair NAME"),
                        ".",
                    ),
                ),
            );
    }

    private show(what: typeof this.shown, make: () => HTMLElement, always = false): void {
        if (this.shown === what && !always) return;
        const element = make();
        if (this.shown === what && this.content.textContent === element.textContent) return;
        this.shown = what;
        replace(this.content, element);
    }

    private nothing(me: string): HTMLElement {
        const isFiltered = this.view.search !== "" || this.view.prefix !== "";
        if (this.view.mine && me === "")
            return emptyState("Who are you?", h("p", {}, "Write your name above, as it stands in “user” or “holder”."));
        if (this.view.mine && !isFiltered) return emptyState(`${printable(me)} holds no lock.`);
        if (isFiltered || this.view.mine)
            return emptyState(
                "No lock fits.",
                button("Show all locks", () => {
                    this.search.value = "";
                    this.look({ ...this.view, search: "", prefix: "", mine: false });
                }),
            );
        if (this.context.live.link.state === "offline") return emptyState("Nothing is known yet.");
        return emptyState(
            "Nobody holds a lock.",
            h("p", {}, "A lock appears here the moment somebody takes it: ", h("code", {}, "holdfast acquire NAME")),
        );
    }

    private updateToolbar(now: number): void {
        const { locks, link } = this.context.live;
        let held = 0;
        let expired = 0;
        let waiters = 0;
        for (const lock of locks.values()) {
            const state = stateAt(lock, now);
            if (state === "held") held += 1;
            if (state === "expired") expired += 1;
            waiters += lock.waiters;
        }
        setText(
            this.summary,
            link.state === "loading"
                ? ""
                : [
                      `${held.toLocaleString("en")} held`,
                      expired > 0 ? `${expired.toLocaleString("en")} expired` : "",
                      waiters > 0 ? plural(waiters, "waiter") : "",
                  ]
                      .filter((part) => part !== "")
                      .join(" · "),
        );
        this.everybody.setAttribute("aria-pressed", String(!this.view.mine));
        this.mine.setAttribute("aria-pressed", String(this.view.mine));
        this.whoami.hidden = !this.view.mine || this.context.session.user !== null;
        const found = prefixes(locks.values());
        const options = found.map(({ prefix, count }) => `${prefix} ${count}`).join("\n");
        if (options === this.shownPrefixes && this.prefix.options.length > 0) return;
        this.shownPrefixes = options;
        const choices =
            found.some(({ prefix }) => prefix === this.view.prefix) || this.view.prefix === ""
                ? found
                : [{ prefix: this.view.prefix, count: 0 }, ...found];
        replace(
            this.prefix,
            h("option", { attrs: { value: "" } }, "All prefixes"),
            ...choices.map(({ prefix, count }) =>
                h(
                    "option",
                    { attrs: { value: prefix, selected: prefix === this.view.prefix } },
                    `${printable(prefix)} (${count})`,
                ),
            ),
        );
    }

    private updateSelection(now: number): void {
        const locks = this.chosenLocks();
        const asked = locks.filter((lock) => openQuestion(lock, now) !== null);
        const live = locks.filter((lock) => lock.lock_id !== null);
        const text = `${locks.map((lock) => lock.name).join("\n")} ${asked.length} ${live.length}`;
        if (this.bar.dataset["shows"] === text) return;
        this.bar.dataset["shows"] = text;
        this.bar.hidden = locks.length === 0;
        const done = (): void => {
            this.chosen.clear();
            this.update();
        };
        const isAdmin = locks.every((lock) => mayAdminister(this.context.session, lock.name));
        replace(
            this.bar,
            h("strong", {}, `${plural(locks.length, "lock")} selected`),
            isAdmin &&
                live.length > 0 &&
                button("Break…", () => breakLocks(this.context, this.chosenLocks(), done), "danger"),
            isAdmin &&
                asked.length > 0 &&
                button("Approve…", () => answer(this.context, "approve", this.chosenLocks(), done)),
            isAdmin &&
                asked.length > 0 &&
                button("Deny…", () => answer(this.context, "deny", this.chosenLocks(), done)),
            !isAdmin && h("span", { class: "faint" }, "Breaking and answering is for administrators of these locks."),
            button("Clear", done, "plain"),
        );
    }

    private chosenLocks(): Lock[] {
        const { locks } = this.context.live;
        return [...this.chosen]
            .flatMap((name) => locks.get(name) ?? [])
            .filter((lock) => instant(lock.acquired_at) !== null);
    }

    private select(names: string[], isSelected: boolean): void {
        for (const name of names)
            if (isSelected) this.chosen.add(name);
            else this.chosen.delete(name);
        this.update();
    }

    private sort(key: SortKey): void {
        const descending = this.view.sort === key && !this.view.descending;
        this.look({ ...this.view, sort: key, descending });
    }

    /** Another choice of locks. It becomes part of the address, without an entry in the history for every letter. */
    private look(view: View): void {
        this.view = view;
        window.history.replaceState(null, "", viewAddress(view));
        this.table.sortedBy(view.sort, view.descending);
        this.update();
    }
}
