import type { AuditEvent, EventKind } from "../../../clients/js/src/documents";
import { h, untrusted, type Child } from "../base/dom";
import { instant, moment, words } from "../base/time";
import { holderWords } from "../model/locks";

export const eventWords: Record<EventKind, string> = {
    acquired: "Acquired",
    renewed: "Renewed",
    released: "Released",
    stolen: "Taken over",
    broken: "Broken",
    transferred: "Handed over",
    revived: "Revived",
    override_requested: "Asked for",
    override_approved: "Request approved",
    override_denied: "Request denied",
    pruned: "Pruned",
    expired: "Expired",
    fenced: "Stale write refused",
    repaired: "Repaired",
};

const most = 500;

interface Line {
    event: AuditEvent;
    /** So many renewals in a row are one line. */
    renewals: number;
}

/** The newest first. Renewals make up most of a log and say little, so those that follow each other are one line. */
export function linesOf(events: AuditEvent[]): Line[] {
    const lines: Line[] = [];
    for (let i = events.length - 1; i >= 0; --i) {
        const event = events[i];
        if (!event) continue;
        const last = lines[lines.length - 1];
        if (event.event === "renewed" && last?.event.event === "renewed" && last.event.lock_id === event.lock_id)
            last.renewals += 1;
        else lines.push({ event, renewals: event.event === "renewed" ? 1 : 0 });
    }
    return lines;
}

function more({ event, renewals }: Line, now: number): Child[] {
    const { details } = event;
    const parts: Child[] = [];
    const add = (...children: Child[]): void => {
        parts.push(h("span", { class: "line" }, ...children));
    };
    if (details["operation"]) add(untrusted(details["operation"]));
    if (event.reason !== null) add("“", untrusted(event.reason), "”");
    if (details["from_holder"])
        add("from ", untrusted(holderWords(details["from_holder"])), `, token ${details["from_token"] ?? "?"}`);
    const ranOut = instant(details["expired_at"]);
    const staleSince = instant(details["stale_since"]);
    if (staleSince !== null) add(`was last renewed at ${moment(staleSince, now)}`);
    else if (ranOut !== null) add(`had run out at ${moment(ranOut, now)}`);
    if (details["refused_token"]) add(`token ${details["refused_token"]} at `, untrusted(details["resource"] ?? ""));
    if (details["what"]) add("could not be read: ", untrusted(details["what"]));
    if (renewals > 1) add(`${renewals} times in a row`);
    else if (details["ttl_ms"] && event.event !== "renewed") add(`for ${words(Number(details["ttl_ms"]))}`);
    return parts;
}

/** Who sent it through a daemon, and from where. What the actor tells is not repeated. */
function sender({ actor, details }: AuditEvent): Child[] {
    const told = (key: string, word: string): Child[] => {
        const value = details[key];
        if (value === undefined || actor?.includes(value)) return [];
        return [h("span", { class: "line" }, word, untrusted(value))];
    };
    return [...told("by", "by "), ...told("address", "at ")];
}

export function eventTable(events: AuditEvent[], now: number): HTMLElement {
    const lines = linesOf(events);
    const rows = lines.slice(0, most).map((line) => {
        const { event } = line;
        return h(
            "tr",
            { class: `event event-${event.event}` },
            h("td", { class: "number faint ev-seq" }, String(event.seq)),
            h(
                "td",
                { class: "number ev-at" },
                h("time", { attrs: { datetime: event.at, title: event.at } }, moment(Date.parse(event.at), now)),
            ),
            h("td", { class: "ev-what" }, h("span", { class: "event-kind" }, eventWords[event.event])),
            h(
                "td",
                { class: "ev-who" },
                h(
                    "span",
                    { class: "stack" },
                    event.user !== null && untrusted(event.user),
                    untrusted(holderWords(event.holder), event.user !== null ? "faint" : ""),
                    event.actor !== null && h("span", { class: "line" }, "by ", untrusted(holderWords(event.actor))),
                    ...sender(event),
                ),
            ),
            h("td", { class: "number ev-token" }, String(event.token)),
            h("td", { class: "ev-more" }, h("span", { class: "stack" }, ...more(line, now))),
        );
    });
    return h(
        "div",
        { class: "scroll", attrs: { tabindex: 0, role: "region", "aria-label": "Audit log" } },
        h(
            "table",
            { class: "events" },
            h(
                "thead",
                {},
                h(
                    "tr",
                    {},
                    ...["#", "Time", "Event", "Holder", "Token", "More"].map((title) =>
                        h("th", { attrs: { scope: "col" } }, title),
                    ),
                ),
            ),
            h("tbody", {}, ...rows),
        ),
        lines.length > most && h("p", { class: "hint" }, `The newest ${most} lines of ${lines.length}.`),
    );
}
