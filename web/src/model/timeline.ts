import { instant } from "../base/time";
import type { AuditEvent, EventKind } from "../../../clients/js/src/documents";

/** How a hold ended; `going on` for the one that has not. */
export type End = "released" | "broken" | "expired" | "stolen" | "handed over" | "going on";

export interface HoldSpan {
    holder: string;
    user: string | null;
    operation: string | null;
    token: number;
    lockId: string;
    from: number;
    to: number;
    end: End;
    /** It began before the oldest event that is shown. */
    isCut: boolean;
}

export interface Mark {
    at: number;
    kind: EventKind;
    event: AuditEvent;
}

/** Somebody asked for the lock and waited for the answer. */
export interface WaitSpan {
    asker: string;
    from: number;
    to: number;
    answer: "approved" | "denied" | "open" | "none";
}

export interface Timeline {
    from: number;
    to: number;
    holds: HoldSpan[];
    waits: WaitSpan[];
    marks: Mark[];
}

const markedKinds: ReadonlySet<EventKind> = new Set([
    "stolen",
    "broken",
    "expired",
    "transferred",
    "override_approved",
    "fenced",
    "repaired",
]);

class Builder {
    readonly holds: HoldSpan[] = [];
    readonly waits: WaitSpan[] = [];
    readonly marks: Mark[] = [];
    private current: HoldSpan | null = null;
    private expiresAt = Infinity;
    private asking: WaitSpan | null = null;

    add(event: AuditEvent): void {
        const at = Date.parse(event.at);
        if (markedKinds.has(event.event)) this.marks.push({ at, kind: event.event, event });
        this.hold(event, at);
        this.question(event, at);
    }

    finish(now: number, expiresAt: number | null, questionUntil: number | null): void {
        const end = expiresAt ?? this.expiresAt;
        if (this.current) this.close(Math.min(now, end), end <= now ? "expired" : "going on");
        if (!this.asking) return;
        this.asking.to = Math.min(now, questionUntil ?? now);
        this.asking.answer = questionUntil !== null && questionUntil > now ? "open" : "none";
    }

    private hold(event: AuditEvent, at: number): void {
        switch (event.event) {
            case "acquired":
            case "stolen": {
                const ranOutAt = instant(event.details["expired_at"]);
                if (this.current) this.close(ranOutAt ?? at, event.event === "stolen" ? "stolen" : "expired");
                this.begin(event, at);
                break;
            }
            case "transferred":
            case "override_approved":
                if (this.current) this.close(at, "handed over");
                this.begin(event, at);
                break;
            case "renewed":
            case "revived":
                if (!this.current) this.begin(event, at, true);
                this.expiresAt = at + Number(event.details["ttl_ms"] ?? Infinity);
                break;
            case "released":
            case "broken":
                if (!this.current) this.begin(event, at, true);
                this.close(at, event.event);
                break;
            case "expired":
                if (this.current) this.close(instant(event.details["expired_at"]) ?? at, "expired");
                break;
            case "repaired":
                if (this.current) this.close(at, "broken");
                break;
            default:
                break;
        }
    }

    private question(event: AuditEvent, at: number): void {
        if (event.event === "override_requested") {
            if (this.asking) this.answer(at, "none");
            this.asking = { asker: event.user ?? event.holder ?? "", from: at, to: at, answer: "open" };
            this.waits.push(this.asking);
        } else if (event.event === "override_approved") {
            this.answer(at, "approved");
        } else if (event.event === "override_denied") {
            this.answer(at, "denied");
        } else if (["released", "broken", "acquired", "stolen", "transferred", "repaired"].includes(event.event)) {
            this.answer(at, "none");
        }
    }

    private answer(at: number, answer: WaitSpan["answer"]): void {
        if (!this.asking) return;
        this.asking.to = at;
        this.asking.answer = answer;
        this.asking = null;
    }

    private begin(event: AuditEvent, at: number, isCut = false): void {
        this.current = {
            holder: event.holder ?? "",
            user: event.user,
            operation: event.details["operation"] ?? null,
            token: event.token,
            lockId: event.lock_id,
            from: at,
            to: at,
            end: "going on",
            isCut,
        };
        this.expiresAt = at + Number(event.details["ttl_ms"] ?? Infinity);
        this.holds.push(this.current);
    }

    private close(at: number, end: End): void {
        if (!this.current) return;
        this.current.to = Math.max(at, this.current.from);
        this.current.end = end;
        this.current = null;
    }
}

/** Who held a lock when, from its events, oldest first. */
export function timelineOf(
    events: AuditEvent[],
    now: number,
    expiresAt: number | null,
    questionUntil: number | null,
): Timeline {
    const builder = new Builder();
    for (const event of events) builder.add(event);
    builder.finish(now, expiresAt, questionUntil);
    const first = events[0];
    return {
        from: first ? Date.parse(first.at) : now,
        to: now,
        holds: builder.holds,
        waits: builder.waits,
        marks: builder.marks,
    };
}

/** The part of a timeline from a moment on. */
export function since(timeline: Timeline, from: number): Timeline {
    return {
        ...timeline,
        from: Math.max(from, timeline.from),
        holds: timeline.holds.filter((hold) => hold.to >= from),
        waits: timeline.waits.filter((wait) => wait.to >= from),
        marks: timeline.marks.filter((mark) => mark.at >= from),
    };
}

/** Round steps for an axis with about so many of them. */
export function ticks(from: number, to: number, about: number): number[] {
    const steps = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800,
        1209600, 2592000,
    ].map((s) => s * 1000);
    const wanted = (to - from) / Math.max(1, about);
    const step = steps.find((each) => each >= wanted) ?? 2592000_000 * Math.ceil(wanted / 2592000_000);
    const zone = new Date(from).getTimezoneOffset() * 60_000;
    const found: number[] = [];
    for (let at = Math.ceil((from - zone) / step) * step + zone; at <= to; at += step) found.push(at);
    return found;
}

export interface UsualHold {
    p50: number;
    p95: number;
    samples: number;
}

const mostSamples = 50;
const fewestSamples = 5;

/** How long a lock is usually held, as the command line counts it: by its last completed holds, if there are enough. */
export function usualHoldOf(holds: HoldSpan[]): UsualHold | null {
    const times = holds
        .filter((hold) => hold.end !== "going on" && !hold.isCut)
        .slice(-mostSamples)
        .map((hold) => hold.to - hold.from)
        .sort((a, b) => a - b);
    if (times.length < fewestSamples) return null;
    // The nearest rank: a time that was measured, and never one between two.
    const percentile = (percent: number): number => times[Math.ceil((times.length * percent) / 100) - 1] ?? 0;
    return { p50: percentile(50), p95: percentile(95), samples: times.length };
}
