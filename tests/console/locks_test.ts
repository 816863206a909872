import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditEvent, EventKind, Lock } from "../../clients/js/src/documents";
import { everything, lockAddress, parse, viewAddress } from "../../web/src/base/router";
import { after, holderWords, isMine, openQuestion, prefixes, selected, stateAt } from "../../web/src/model/locks";

const start = Date.parse("2026-01-31T12:00:00.000Z");
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString();

function event(seq: number, kind: EventKind, more: Partial<AuditEvent> = {}): AuditEvent {
    return {
        seq,
        at: at(seq),
        name: "migrate/prod",
        event: kind,
        token: 7,
        lock_id: "00000000-0000-4000-8000-000000000001",
        holder: "web-3:ci:812:55",
        user: null,
        actor: null,
        reason: null,
        details: {},
        prev_hash: "0",
        hash: `hash ${seq}`,
        ...more,
    };
}

const granted = after(
    undefined,
    event(1, "acquired", { reason: "release 42", details: { ttl_ms: "30000", operation: "up" } }),
);

function held(name: string, more: Partial<Lock> = {}): Lock {
    return { ...granted, name, ...more };
}

test("a grant makes a held lock of nothing", () => {
    assert.equal(granted.state, "held");
    assert.equal(granted.operation, "up");
    assert.equal(granted.reason, "release 42");
    assert.equal(granted.acquired_at, at(1));
    assert.equal(granted.expires_at, at(31));
    assert.equal(granted.chain, "hash 1");
});

test("a renewal moves the end, but never past the longest hold", () => {
    const renewed = after(granted, event(2, "renewed", { details: { ttl_ms: "60000" } }));
    assert.equal(renewed.expires_at, at(62));
    assert.equal(renewed.renew_seq, 1);
    assert.equal(renewed.acquired_at, at(1));
    const limited = after({ ...granted, max_until: at(40) }, event(2, "renewed", { details: { ttl_ms: "60000" } }));
    assert.equal(limited.expires_at, at(40));
});

test("an event that was seen before changes nothing", () => {
    const released = after(granted, event(2, "released"));
    assert.equal(released.state, "free");
    assert.equal(after(released, event(1, "acquired")), released);
});

test("releasing and breaking free a lock, and its token stays", () => {
    for (const kind of ["released", "broken"] as const) {
        const free = after(granted, event(2, kind, { token: 9 }));
        assert.equal(free.state, "free");
        assert.equal(free.holder, null);
        assert.equal(free.token, 9);
    }
});

test("a handed over lock has another holder and no question left", () => {
    const asked = after(
        granted,
        event(2, "override_requested", { holder: "other", lock_id: "00000000-0000-4000-8000-000000000002" }),
    );
    assert.equal(asked.override?.holder, "other");
    assert.equal(asked.holder, "web-3:ci:812:55");
    const approved = after(
        asked,
        event(3, "override_approved", { holder: "other", token: 8, details: { ttl_ms: "1000" } }),
    );
    assert.equal(approved.holder, "other");
    assert.equal(approved.token, 8);
    assert.equal(approved.override, null);
    assert.equal(after(asked, event(3, "override_denied")).override, null);
});

test("a lease that ran out is expired before anybody has written it down", () => {
    assert.equal(stateAt(granted, start + 30_999), "held");
    assert.equal(stateAt(granted, start + 31_000), "expired");
});

test("a question that ran out is not open", () => {
    const question = {
        lock_id: "x",
        holder: "h",
        user: null,
        reason: null,
        ttl_ms: 1,
        asked_at: at(0),
        expires_at: at(10),
    };
    const lock = held("a", { override: question });
    assert.equal(openQuestion(lock, start + 9_000), question);
    assert.equal(openQuestion(lock, start + 10_000), null);
});

test("a holder is said as people would", () => {
    assert.equal(holderWords("web-3:ci:812:55"), "ci@web-3 (pid 812)");
    assert.equal(holderWords("browser-tab"), "browser-tab");
    assert.equal(holderWords("a:b:c:d"), "a:b:c:d");
});

test("a lock is mine by its user, by its holder, or by the owner of the process", () => {
    assert.ok(isMine(held("a", { user: "anna" }), "anna"));
    assert.ok(isMine(held("a"), "ci"));
    assert.ok(isMine(held("a", { holder: "tab" }), "tab"));
    assert.ok(!isMine(held("a"), "c"));
    assert.ok(!isMine(held("a"), ""));
});

test("search looks at what is shown, prefixes at the beginning of names, and free locks are left out", () => {
    const locks = [held("b/x", { user: "Anna" }), held("a/y"), held("a/z", { state: "free" }), held("c", { token: 1 })];
    const names = (view: Partial<typeof everything>): string[] =>
        selected(locks, { ...everything, ...view }, "Anna").map((lock) => lock.name);
    assert.deepEqual(names({}), ["a/y", "b/x", "c"]);
    assert.deepEqual(names({ search: " anna " }), ["b/x"]);
    assert.deepEqual(names({ search: "RELEASE" }), ["a/y", "b/x", "c"]);
    assert.deepEqual(names({ prefix: "a/" }), ["a/y"]);
    assert.deepEqual(names({ mine: true }), ["b/x"]);
    assert.deepEqual(names({ sort: "token" }), ["c", "a/y", "b/x"]);
    assert.deepEqual(names({ sort: "token", descending: true }), ["a/y", "b/x", "c"]);
    assert.deepEqual(prefixes(locks), [
        { prefix: "a/", count: 1 },
        { prefix: "b/", count: 1 },
    ]);
});

test("an address names a page, whatever the name of the lock", () => {
    for (const name of ["migrate/prod", "a?b#c%2F", "<script>", "ü\u202e", "%"]) {
        const route = parse(lockAddress(name));
        assert.deepEqual(route, { page: "lock", name });
    }
    const view = { search: "a&b=c", prefix: "x/", mine: true, sort: "age", descending: true } as const;
    assert.deepEqual(parse(viewAddress(view)), { page: "locks", view });
    assert.deepEqual(parse(viewAddress(everything)), { page: "locks", view: everything });
    assert.deepEqual(parse("#/lock/%E0%A4%A"), { page: "lock", name: "%E0%A4%A" });
});
