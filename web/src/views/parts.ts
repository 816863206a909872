import { h, untrusted, type Child } from "../base/dom";
import { shortened } from "../base/text";
import { instant, moment } from "../base/time";
import { processOf } from "../model/locks";
import type { Lock } from "../../../clients/js/src/documents";

const stateWords: Record<Lock["state"], string> = {
    held: "Held",
    expired: "Expired",
    free: "Free",
    unreadable: "Unreadable",
};

export function stateBadge(state: Lock["state"]): HTMLElement {
    return h(
        "span",
        { class: `badge badge-${state}` },
        h("span", { class: "dot", attrs: { "aria-hidden": "true" } }),
        stateWords[state],
    );
}

/** The person first, where one was named; the process below. */
export function holder(lock: { holder: string | null; user: string | null }): HTMLElement {
    if (lock.holder === null) return h("span", { class: "faint" }, "nobody");
    const process = processOf(lock.holder);
    const name = process ? `${process.user}@${process.host}` : shortened(lock.holder, 200);
    const pid = process ? `pid ${process.pid}` : "";
    if (lock.user !== null)
        return h(
            "span",
            { class: "stack" },
            untrusted(lock.user, "strong"),
            h("span", { class: "faint line" }, untrusted(name), pid && ` · ${pid}`),
        );
    return h("span", { class: "stack" }, untrusted(name), pid && h("span", { class: "faint line" }, pid));
}

export function time(text: string | null, now: number): HTMLElement {
    const at = instant(text);
    if (at === null) return h("span", { class: "faint" }, "–");
    return h("time", { attrs: { datetime: text, title: text } }, moment(at, now));
}

export function notice(kind: "error" | "warning" | "calm", title: string, ...more: Child[]): HTMLElement {
    return h(
        "div",
        { class: `notice notice-${kind}`, attrs: kind === "error" ? { role: "alert" } : {} },
        h("p", { class: "notice-title" }, title),
        ...more,
    );
}

export function emptyState(title: string, ...more: Child[]): HTMLElement {
    return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), ...more);
}

/** Grey bars in the place of what is being read. */
export function loading(rows: number): HTMLElement {
    return h(
        "div",
        { class: "loading", attrs: { role: "status", "aria-label": "Loading" } },
        ...Array.from({ length: rows }, () => h("span", { class: "bone" })),
    );
}

/** A list of terms; a value that is null is left out. */
export function facts(...rows: Array<[Child, Child]>): HTMLElement {
    return h(
        "dl",
        { class: "facts" },
        ...rows.flatMap(([term, value]) =>
            value === null || value === undefined || value === false || value === ""
                ? []
                : [h("dt", {}, term), h("dd", {}, value)],
        ),
    );
}
