import "./web_crypto";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEvent } from "../../clients/js/src/documents";
import { checkChain } from "../../web/src/model/chain";
import history from "./fixtures/history.json";

// What `holdfast history --json` printed of a lock with a name, a user and reasons that are not ASCII.
const events = history.events as unknown as AuditEvent[];
const newest = events[events.length - 1];
const lock = { seq: events.length, chain: newest?.hash ?? "", pruned_seq: 0 };

function changed(index: number, change: Partial<AuditEvent>): AuditEvent[] {
    return events.map((event, i) => (i === index ? { ...event, ...change } : event));
}

test("the log that the store wrote is intact", async () => {
    assert.deepEqual(await checkChain(events, lock), { state: "intact", events: events.length, isWhole: true });
});

test("the newest part of a log is intact by itself, and said to be a part", async () => {
    assert.deepEqual(await checkChain(events.slice(2), lock), {
        state: "intact",
        events: events.length - 2,
        isWhole: false,
    });
    assert.deepEqual(await checkChain(events.slice(2), { ...lock, pruned_seq: 2 }), {
        state: "intact",
        events: events.length - 2,
        isWhole: true,
    });
});

test("a change of any field is found", async () => {
    const changes: Array<Partial<AuditEvent>> = [
        { at: "2026-11-19T01:02:56.057Z" },
        { name: "other" },
        { event: "revived" },
        { token: 1 },
        { holder: "another" },
        { lock_id: "00b102f1-581b-4465-bbd4-25137461e957" },
        { user: null },
        { actor: "x" },
        { reason: "x" },
        { details: { ttl_ms: "600001" } },
        { details: {} },
    ];
    for (const change of changes) {
        const result = await checkChain(changed(1, change), lock);
        assert.equal(result.state, "broken", JSON.stringify(change));
        assert.equal(result.state === "broken" && result.seq, 2);
    }
});

test("an event that is missing, and a log that was cut, are found", async () => {
    const holed = await checkChain([...events.slice(0, 1), ...events.slice(2)], lock);
    assert.deepEqual(holed, { state: "broken", seq: 3, why: "events are missing before it" });
    const cut = await checkChain(events.slice(0, -1), lock);
    assert.equal(cut.state, "broken");
    const restarted = await checkChain(changed(0, { prev_hash: "1".repeat(64) }), lock);
    assert.equal(restarted.state, "broken");
});

test("an event that was made anew does not fit what follows", async () => {
    const first = events[0];
    assert.ok(first);
    const result = await checkChain(changed(1, { prev_hash: first.prev_hash }), lock);
    assert.deepEqual(result, { state: "broken", seq: 2, why: "it does not follow from the event before" });
});

test("a lock that was never used has an empty and whole log", async () => {
    assert.deepEqual(await checkChain([], { seq: 0, chain: "", pruned_seq: 0 }), {
        state: "intact",
        events: 0,
        isWhole: true,
    });
});
