import type { Lock } from "../../../clients/js/src/documents";
import { h, replace, setAttribute, setText, untrusted } from "../base/dom";
import { lockAddress } from "../base/router";
import { plural, printable } from "../base/text";
import { ago, instant, seconds, words } from "../base/time";
import { openQuestion, stateAt, type SortKey } from "../model/locks";
import { holder, stateBadge } from "./parts";

export interface TableActions {
    sort(key: SortKey): void;
    select(names: string[], isSelected: boolean): void;
}

interface Column {
    title: string;
    className: string;
    key?: SortKey;
}

const columns: readonly Column[] = [
    { title: "Lock", className: "col-name", key: "name" },
    { title: "State", className: "col-state" },
    { title: "Holder", className: "col-holder", key: "holder" },
    { title: "Doing what", className: "col-why" },
    { title: "Token", className: "col-token", key: "token" },
    { title: "Held for", className: "col-age", key: "age" },
    { title: "Expires in", className: "col-expires", key: "expires" },
    { title: "Waiting", className: "col-waiters", key: "waiters" },
];

/** One row, which stays in the page as long as its lock is in sight; only what changed is written. */
class Row {
    readonly element: HTMLTableRowElement;
    readonly link: HTMLAnchorElement;
    private readonly check: HTMLInputElement;
    private readonly cells = columns.map((column) => h("td", { class: column.className, attrs: { role: "cell" } }));
    private readonly bar = h("span", { class: "bar-fill" });
    private readonly countdown = h("span", { class: "countdown" });
    private shown: Lock | null = null;
    private shownState: string | null = null;

    constructor(name: string, actions: TableActions) {
        this.check = h("input", {
            attrs: { type: "checkbox", "aria-label": `Select ${printable(name)}` },
            on: { change: () => actions.select([name], this.check.checked) },
        });
        this.link = h("a", { attrs: { href: lockAddress(name) } }, untrusted(name));
        this.cell(0).append(this.link);
        this.cell(6).append(this.countdown, h("span", { class: "bar", attrs: { "aria-hidden": "true" } }, this.bar));
        this.element = h(
            "tr",
            { attrs: { role: "row" } },
            h("td", { class: "col-check", attrs: { role: "cell" } }, this.check),
            ...this.cells,
        );
    }

    show(lock: Lock, index: number, isSelected: boolean, now: number): void {
        setAttribute(this.element, "aria-rowindex", String(index + 2));
        if (this.check.checked !== isSelected) this.check.checked = isSelected;
        this.element.classList.toggle("is-selected", isSelected);
        const question = openQuestion(lock, now) !== null;
        const state = `${stateAt(lock, now)}${question ? "?" : ""}`;
        if (this.shownState !== state) {
            this.shownState = state;
            this.element.classList.toggle("is-expired", state.startsWith("expired"));
            replace(
                this.cell(1),
                stateBadge(stateAt(lock, now)),
                question && h("span", { class: "badge badge-asked" }, "Asked for"),
            );
        }
        if (this.shown !== lock) this.write(lock);
        this.tick(lock, now);
    }

    private write(lock: Lock): void {
        const before = this.shown;
        this.shown = lock;
        if (!before || before.holder !== lock.holder || before.user !== lock.user) replace(this.cell(2), holder(lock));
        if (!before || before.operation !== lock.operation || before.reason !== lock.reason)
            replace(
                this.cell(3),
                h(
                    "span",
                    { class: "stack" },
                    lock.operation !== null
                        ? untrusted(lock.operation)
                        : lock.reason === null && h("span", { class: "faint" }, "–"),
                    lock.reason !== null && untrusted(lock.reason, lock.operation !== null ? "faint line" : ""),
                ),
            );
        setText(this.cell(4), String(lock.token));
        setText(this.cell(7), lock.waiters === 0 ? "–" : plural(lock.waiters, "waiter"));
        this.cell(7).classList.toggle("faint", lock.waiters === 0);
    }

    private tick(lock: Lock, now: number): void {
        const from = instant(lock.acquired_at);
        const end = instant(lock.expires_at);
        setText(this.cell(5), from === null ? "–" : words(Math.max(1000, now - from)));
        const left = end === null ? 0 : end - now;
        setText(this.countdown, end === null ? "–" : left > 0 ? seconds(left) : ago(-left));
        const part = lock.ttl_ms ? Math.max(0, Math.min(1, left / lock.ttl_ms)) : 0;
        this.bar.style.transform = `scaleX(${part.toFixed(3)})`;
        this.bar.classList.toggle("is-low", part < 0.2);
    }

    private cell(index: number): HTMLTableCellElement {
        const cell = this.cells[index];
        if (!cell) throw new Error(`there is no column ${index}`);
        return cell;
    }
}

const spare = 8;

/**
 * The locks in one table. Only the rows in sight are in the page, and empty rows take the room of the others, so that
 * thousands of locks cost as little as a screenful.
 */
export class LockTable {
    readonly element: HTMLElement;
    private readonly table: HTMLTableElement;
    private readonly body = h("tbody", { attrs: { role: "rowgroup" } });
    private readonly above = h("div", { attrs: { "aria-hidden": "true" } });
    private readonly below = h("div", { attrs: { "aria-hidden": "true" } });
    private readonly heads = new Map<SortKey, HTMLElement>();
    private readonly all: HTMLInputElement;
    private rows = new Map<string, Row>();
    private locks: Lock[] = [];
    private selected: ReadonlySet<string> = new Set();
    private rowHeight = 56;
    private readonly onScroll = (): void => this.show(this.locks, this.selected, this.now());

    constructor(
        private readonly actions: TableActions,
        private readonly now: () => number,
    ) {
        this.all = h("input", {
            attrs: { type: "checkbox", "aria-label": "Select all that are listed" },
            on: {
                change: () =>
                    actions.select(
                        this.locks.map((lock) => lock.name),
                        this.all.checked,
                    ),
            },
        });
        const heads = columns.map((column) => this.head(column));
        this.table = h(
            "table",
            { class: "locks", attrs: { role: "table", "aria-label": "Locks" } },
            h(
                "thead",
                { attrs: { role: "rowgroup" } },
                h(
                    "tr",
                    { attrs: { role: "row" } },
                    h("th", { class: "col-check", attrs: { role: "columnheader", scope: "col" } }, this.all),
                    ...heads,
                ),
            ),
            this.body,
        );
        this.body.addEventListener("keydown", (event) => this.move(event));
        this.element = h("div", { class: "table-frame" }, this.above, this.table, this.below);
        window.addEventListener("scroll", this.onScroll, { passive: true });
        window.addEventListener("resize", this.onScroll);
    }

    close(): void {
        window.removeEventListener("scroll", this.onScroll);
        window.removeEventListener("resize", this.onScroll);
    }

    sortedBy(sort: SortKey, descending: boolean): void {
        for (const [key, head] of this.heads)
            setAttribute(head, "aria-sort", key === sort ? (descending ? "descending" : "ascending") : null);
    }

    show(locks: Lock[], selected: ReadonlySet<string>, now: number): void {
        this.locks = locks;
        this.selected = selected;
        setAttribute(this.table, "aria-rowcount", String(locks.length + 1));
        const listed = locks.filter((lock) => selected.has(lock.name)).length;
        this.all.checked = listed > 0 && listed === locks.length;
        this.all.indeterminate = listed > 0 && listed < locks.length;
        const [first, end] = this.inSight();
        const next = new Map<string, Row>();
        for (let i = first; i < end; ++i) {
            const lock = locks[i];
            if (!lock) continue;
            const row = this.rows.get(lock.name) ?? new Row(lock.name, this.actions);
            row.show(lock, i, selected.has(lock.name), now);
            next.set(lock.name, row);
        }
        this.place(next);
        this.setRoom(first, locks.length - end);
        const [sample] = next.values();
        if (sample) this.rowHeight = sample.element.offsetHeight || this.rowHeight;
    }

    /** Moves only what stands at another place, so that focus and selection of text stay. */
    private place(next: Map<string, Row>): void {
        for (const [name, row] of this.rows) if (!next.has(name)) row.element.remove();
        let at: ChildNode | null = this.body.firstChild;
        for (const row of next.values()) {
            if (row.element === at) at = at.nextSibling;
            else this.body.insertBefore(row.element, at);
        }
        this.rows = next;
    }

    private inSight(): [number, number] {
        const top = this.element.getBoundingClientRect().top;
        const first = Math.floor(-top / this.rowHeight) - spare;
        const count = Math.ceil(window.innerHeight / this.rowHeight) + 2 * spare;
        const start = Math.max(0, Math.min(first, this.locks.length - count));
        return [start, Math.min(this.locks.length, start + count)];
    }

    private setRoom(above: number, below: number): void {
        this.above.style.height = `${above * this.rowHeight}px`;
        this.below.style.height = `${below * this.rowHeight}px`;
    }

    private head(column: Column): HTMLElement {
        const { key } = column;
        const head = h(
            "th",
            { class: column.className, attrs: { role: "columnheader", scope: "col" } },
            key === undefined
                ? column.title
                : h(
                      "button",
                      { attrs: { type: "button" }, on: { click: () => this.actions.sort(key) } },
                      column.title,
                      h("span", { class: "sort-mark", attrs: { "aria-hidden": "true" } }),
                  ),
        );
        if (key !== undefined) this.heads.set(key, head);
        return head;
    }

    /** Arrow keys go from lock to lock, x selects the one in focus. */
    private move(event: KeyboardEvent): void {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const rows = [...this.rows.values()];
        const at = rows.findIndex((row) => row.element.contains(document.activeElement));
        if (at < 0) return;
        const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
        if (step !== 0) {
            event.preventDefault();
            const next = rows[at + step];
            next?.link.focus({ preventScroll: true });
            next?.element.scrollIntoView({ block: "nearest" });
        } else if (event.key === "x") {
            event.preventDefault();
            const name = [...this.rows.keys()][at];
            if (name !== undefined) this.actions.select([name], !this.selected.has(name));
        }
    }
}
