import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEvent, EventKind } from "../../clients/js/src/documents";
import { since, ticks, timelineOf, usualHoldOf } from "../../web/src/model/timeline";

const start = Date.parse("2026-01-31T12:00:00.000Z");
let seq = 0;

function event(second: number, kind: EventKind, more: Partial<AuditEvent> = {}): AuditEvent {
    return {
        seq: ++seq,
        at: new Date(start + second * 1000).toISOString(),
        name: "a",
        event: kind,
        token: 1,
        lock_id: "x",
        holder: "h",
        user: null,
        actor: null,
        reason: null,
        details: {},
        prev_hash: "",
        hash: "",
        ...more,
    };
}

const now = start + 1_000_000;
const seconds = (...times: number[]): number[] => times.map((time) => start + time * 1000);
const spans = (events: AuditEvent[], expiresAt: number | null = null): Array<[string, number, number, string]> =>
    timelineOf(events, now, expiresAt, null).holds.map((hold) => [hold.holder, hold.from, hold.to, hold.end]);

test("a hold goes from its grant to its release", () => {
    const [from, to] = seconds(10, 50) as [number, number];
    assert.deepEqual(
        spans([event(10, "acquired", { details: { ttl_ms: "30000" } }), event(30, "renewed"), event(50, "released")]),
        [["h", from, to, "released"]],
    );
});

test("a lease that was taken over ended when it ran out", () => {
    const ranOut = new Date(start + 40_000).toISOString();
    const timeline = timelineOf(
        [
            event(10, "acquired"),
            event(60, "stolen", { holder: "thief", details: { expired_at: ranOut, ttl_ms: "5000" } }),
        ],
        now,
        null,
        null,
    );
    assert.deepEqual(
        timeline.holds.map((hold) => [hold.holder, hold.to - start, hold.end]),
        [
            ["h", 40_000, "stolen"],
            ["thief", 65_000, "expired"],
        ],
    );
    assert.deepEqual(
        timeline.marks.map((mark) => mark.kind),
        ["stolen"],
    );
});

test("what goes on ends now, and what ran out unnoticed ended then", () => {
    assert.deepEqual(spans([event(10, "acquired")], now + 5_000)[0]?.slice(2), [now, "going on"]);
    assert.deepEqual(spans([event(10, "acquired")], now - 5_000)[0]?.slice(2), [now - 5_000, "expired"]);
});

test("a transfer begins another hold", () => {
    assert.deepEqual(
        spans([
            event(1, "acquired"),
            event(2, "transferred", { holder: "next" }),
            event(3, "broken", { holder: "next" }),
        ]).map(([holder, , , end]) => [holder, end]),
        [
            ["h", "handed over"],
            ["next", "broken"],
        ],
    );
});

test("a log that begins in the middle of a hold shows it as cut", () => {
    const [hold] = timelineOf([event(5, "renewed"), event(9, "released")], now, null, null).holds;
    assert.equal(hold?.isCut, true);
});

test("who asked waited until the answer", () => {
    const asked = (answer: EventKind): string | undefined =>
        timelineOf(
            [event(1, "acquired"), event(2, "override_requested", { holder: "asker" }), event(7, answer)],
            now,
            null,
            null,
        ).waits[0]?.answer;
    assert.equal(asked("override_approved"), "approved");
    assert.equal(asked("override_denied"), "denied");
    assert.equal(asked("released"), "none");
    const open = timelineOf([event(1, "acquired"), event(2, "override_requested")], now, null, now + 1).waits[0];
    assert.equal(open?.answer, "open");
    assert.equal(open?.to, now);
});

test("a part of a timeline keeps what reaches into it", () => {
    const whole = timelineOf(
        [event(10, "acquired"), event(20, "broken"), event(30, "acquired"), event(40, "released")],
        now,
        null,
        null,
    );
    const part = since(whole, start + 35_000);
    assert.equal(part.holds.length, 1);
    assert.equal(part.marks.length, 0);
    assert.equal(part.from, start + 35_000);
});

test("an axis has few and round steps", () => {
    for (const span of [2_000, 60_000, 3_600_000, 86_400_000, 30 * 86_400_000, 400 * 86_400_000]) {
        const found = ticks(start, start + span, 8);
        assert.ok(found.length >= 2 && found.length <= 9, `${span}: ${found.length}`);
    }
});

test("what is usual is the nearest rank of the last completed holds, and nothing where there are few", () => {
    const log: AuditEvent[] = [];
    for (const [i, length] of [5, 1, 4, 2, 3].entries())
        log.push(event(100 * i, "acquired"), event(100 * i + length, "released"));
    log.push(event(900, "acquired", { details: { ttl_ms: "999000" } }));
    const usual = (events: AuditEvent[]) => usualHoldOf(timelineOf(events, now, null, null).holds);
    assert.deepEqual(usual(log), { p50: 3_000, p95: 5_000, samples: 5 });
    assert.equal(usual(log.slice(2)), null);
});
