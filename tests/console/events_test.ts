import "./web_crypto";
import assert from "node:assert/strict";
import { test } from "node:test";
import { Deduplicator, SseParser } from "../../clients/js/src/events";
import { Elapsed, newCredentials } from "../../clients/js/src/hold";

const stream = ': hello\n\nid: 1\nevent: acquired\ndata: {"a":\ndata: 1}\n\nid: 2\r\nevent: ready\r\ndata: {}\r\n\r\n';

test("a stream is read the same in whatever pieces it comes", () => {
    const whole = new SseParser().push(stream);
    assert.deepEqual(whole, [
        { id: "1", event: "acquired", data: '{"a":\n1}' },
        { id: "2", event: "ready", data: "{}" },
    ]);
    for (let size = 1; size < 20; ++size) {
        const parser = new SseParser();
        const found = [];
        for (let i = 0; i < stream.length; i += size) found.push(...parser.push(stream.slice(i, i + size)));
        assert.deepEqual(found, whole, `pieces of ${size}`);
    }
});

test("an event that has not come whole is not passed on", () => {
    assert.deepEqual(new SseParser().push("id: 1\nevent: acquired\ndata: {}\n"), []);
});

test("an event of a lock passes once, and others are not in its way", () => {
    const seen = new Deduplicator();
    assert.equal(seen.isNew({ name: "a", seq: 1 }), true);
    assert.equal(seen.isNew({ name: "a", seq: 1 }), false);
    assert.equal(seen.isNew({ name: "b", seq: 1 }), true);
    assert.equal(seen.isNew({ name: "a", seq: 3 }), true);
    assert.equal(seen.isNew({ name: "a", seq: 2 }), false);
});

test("a lease is chosen at random, in the form that the daemon reads", () => {
    const { lease, lockId } = newCredentials();
    assert.match(lease, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.[0-9a-f]{32}$/);
    assert.ok(lease.startsWith(`${lockId}.`));
    assert.notEqual(newCredentials().lease, lease);
});

test("the time that a sleeping machine did not count passes all the same", (context) => {
    const start = Date.now();
    context.mock.method(Date, "now", () => start);
    const elapsed = new Elapsed();
    context.mock.method(Date, "now", () => start + 3_600_000);
    assert.ok(elapsed.ms >= 3_600_000);
    context.mock.method(Date, "now", () => start - 3_600_000);
    assert.ok(elapsed.ms >= 0);
});
