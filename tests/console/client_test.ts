// The JavaScript client against the real daemon.
import "./web_crypto";
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "../../clients/js/src/client";
import { HoldfastError } from "../../clients/js/src/errors";
import type { FeedItem } from "../../clients/js/src/events";
import { Daemon } from "./daemon";

const daemon = new Daemon();
let client: Client;

before(async () => {
    await daemon.start();
    client = new Client({ url: daemon.url });
});

after(async () => daemon.remove());

const codeOf = async (call: Promise<unknown>): Promise<string> => {
    const error = await call.then(
        () => null,
        (reason: unknown) => reason,
    );
    assert.ok(error instanceof HoldfastError, String(error));
    return error.code;
};

test("a lock is taken, seen, refused to others and given back", async () => {
    const hold = await client.acquire("simple", { holder: "me", operation: "test", reason: "why not", ttlMs: 60_000 });
    assert.ok(hold.isHeld && hold.token > 0 && hold.leftMs > 30_000);
    const lock = await client.lock("simple");
    assert.deepEqual([lock.state, lock.holder, lock.operation, lock.token], ["held", "me", "test", hold.token]);
    assert.equal(await codeOf(client.acquire("simple")), "E_LOCK_CONFLICT");
    assert.equal(await client.check("simple", hold.token), true);
    assert.equal(await client.check("simple", hold.token - 1), false);
    await hold.release();
    assert.equal(hold.isHeld, false);
    assert.equal(hold.signal.aborted, false);
    assert.equal((await client.lock("simple")).state, "free");
});

test("a hold is renewed as long as it lives", async () => {
    const hold = await client.acquire("renewed", { ttlMs: 15_000 });
    await hold.renew();
    const first = (await client.lock("renewed")).renew_seq ?? 0;
    assert.ok(first >= 1);
    // By itself, after a third of its time.
    while (((await client.lock("renewed")).renew_seq ?? 0) === first)
        await new Promise((resolve) => setTimeout(resolve, 500));
    assert.ok(hold.isHeld);
    await hold.release();
});

test("a lease that was taken away is lost, and says why", async () => {
    const hold = await client.acquire("taken", { ttlMs: 60_000 });
    await client.unlock("taken", { lockId: hold.lockId, actor: "test", reason: "for fun" });
    assert.equal(await codeOf(hold.renew()), "E_LOCK_NOT_HELD");
    assert.equal(hold.signal.aborted, true);
    assert.equal(hold.isHeld, false);
    assert.equal(hold.loss?.code, "E_LOCK_NOT_HELD");
});

test("a lease that cannot be renewed is lost before anybody else can have it", async () => {
    const own = new Daemon();
    await own.start();
    const hold = await new Client({ url: own.url }).acquire("alone", { ttlMs: 3_000 });
    await own.stop("SIGKILL");
    await new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
    assert.equal(hold.loss?.code, "E_LOCK_EXPIRED");
    await own.remove();
});

test("a transfer hands the lock over with a lease that only its caller knows", async () => {
    const hold = await client.acquire("passed", { ttlMs: 60_000 });
    const grant = await hold.transfer("next", { user: "anna" });
    assert.equal(hold.isHeld, false);
    const lock = await client.lock("passed");
    assert.deepEqual([lock.holder, lock.user, lock.lock_id], ["next", "anna", grant.lock_id]);
    assert.ok(grant.token > hold.token);
    await daemon.post("/v1/release", { name: "passed", lease: grant.lease });
});

test("an attempt whose answer is lost is repeated, and takes the lock once", async () => {
    let count = 0;
    const losing: typeof fetch = async (input, init) => {
        const response = await fetch(input, init);
        if (count++ > 0) return response;
        await response.text();
        throw new TypeError("the answer was lost");
    };
    const hold = await new Client({ url: daemon.url, fetch: losing }).acquire("lossy", { ttlMs: 60_000 });
    const events = await client.history("lossy");
    assert.deepEqual(
        events.map(({ event, token }) => [event, token]),
        [
            ["acquired", hold.token],
            ["renewed", hold.token],
        ],
    );
    await hold.release();
});

test("a waiter gets the lock when it is given back", async () => {
    const first = await client.acquire("queue", { ttlMs: 60_000 });
    const second = client.acquire("queue", { ttlMs: 60_000, waitMs: 60_000, holder: "second" });
    while ((await client.lock("queue")).waiters === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    await first.release();
    const hold = await second;
    assert.ok(hold.token > first.token);
    await hold.release();
});

test("events come once, also across a restart of the daemon", async () => {
    const own = new Daemon();
    await own.start();
    const reader = new Client({ url: own.url });
    const stop = new AbortController();
    const seen: string[] = [];
    let arrived = (_: FeedItem): void => {};
    const reading = (async () => {
        for await (const item of reader.events({ signal: stop.signal })) {
            if (item.kind === "event") seen.push(`${item.event.name} ${item.event.seq} ${item.event.event}`);
            arrived(item);
        }
    })();
    const until = (isThere: (item: FeedItem) => boolean): Promise<void> =>
        new Promise((resolve) => {
            arrived = (item) => {
                if (isThere(item)) resolve();
            };
        });
    await until((item) => item.kind === "ready");
    const released = until((item) => item.kind === "event" && item.event.event === "released");
    const granted = await own.acquire("a");
    await own.command("release", "a", "--lease", granted.lease);
    await released;
    const broken = until((item) => item.kind === "event" && item.event.event === "broken");
    await own.stop("SIGKILL");
    await own.acquire("a");
    await own.command("unlock", "a", "--yes");
    await own.start();
    await broken;
    assert.deepEqual(seen, ["a 1 acquired", "a 2 released", "a 3 acquired", "a 4 broken"]);
    stop.abort();
    await reading;
    await own.remove();
});
