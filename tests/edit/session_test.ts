// Edit sessions against the real daemon, in tabs that a test makes up. What needs a real one is in browser_client_test.ts.
import "../console/web_crypto";
import assert from "node:assert/strict";
import { after, afterEach, before, test, type TestContext } from "node:test";
import { Client } from "../../clients/js/src/client";
import { EditSession } from "../../clients/js/src/edit_session";
import type { EditOptions, EditView } from "../../clients/js/src/edit_view";
import { whenFree } from "../../clients/js/src/lock_watch";
import { SharedFeed } from "../../clients/js/src/shared_feed";
import { Daemon } from "../console/daemon";
import { FakeBrowser, type FakeTab } from "./fake_browser";

const daemon = new Daemon();
const closing: Array<() => unknown> = [];

before(async () => daemon.start());
after(async () => daemon.remove());
afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
});

/** A tab with a session in it, and a way to wait for what its page would show. */
class Screen {
    private readonly waiting = new Set<() => void>();
    readonly feed: SharedFeed;
    readonly client: Client;
    readonly session: EditSession;
    ttlMs = 120_000;
    /** What somebody between answers in the daemon's place. */
    answers: (path: string) => Response | null = () => null;

    constructor(
        readonly tab: FakeTab,
        name: string,
        holder: string,
        options: Partial<EditOptions> = {},
        url = daemon.url,
    ) {
        const client = new Client({
            url,
            patienceMs: 2_000,
            fetch: async (input, init) => this.answers(new URL(String(input)).pathname) ?? fetch(input, init),
        });
        this.client = client;
        // What a policy would say.
        const acquire = client.acquire.bind(client);
        client.acquire = (lock, wish) => acquire(lock, { ...wish, ttlMs: this.ttlMs });
        this.feed = new SharedFeed(this.client, tab);
        this.session = new EditSession({
            client: this.client,
            feed: this.feed,
            browser: tab,
            tab: holder,
            name,
            holder,
            whenUnreachable: "warn",
            onChange: () => this.waiting.forEach((look) => look()),
            ...options,
        });
        closing.push(async () => {
            await this.session.close();
            this.feed.close();
            tab.channel.close();
        });
    }

    get view(): EditView {
        return this.session.view;
    }

    until(isThere: (view: EditView) => boolean): Promise<EditView> {
        return new Promise((resolve) => {
            const look = (): void => {
                if (!isThere(this.view)) return;
                this.waiting.delete(look);
                resolve(this.view);
            };
            this.waiting.add(look);
            look();
        });
    }
}

const screen = (
    name: string,
    holder: string,
    options: Partial<EditOptions> = {},
    browser = new FakeBrowser(),
): Screen => new Screen(browser.tab(), name, holder, options);

const isHeldByOther = ({ obstacle }: EditView): boolean => obstacle?.kind === "held";

test("one screen edits, another is told whose it is, and can edit when it is given back", async () => {
    const one = screen("one", "architecture");
    const two = screen("one", "techstack");
    await one.session.edit();
    assert.equal(one.view.mayType, true);
    await two.until(isHeldByOther);
    await two.session.edit();
    assert.equal(two.view.mode, "viewing");
    assert.equal(two.view.failure?.code, "E_LOCK_CONFLICT");
    assert.equal(two.view.failure?.holder?.holder, "architecture");
    await one.session.stop();
    await two.until(({ obstacle }) => obstacle === null);
    await two.session.edit();
    assert.equal(two.view.mayType, true);
});

test("input renews the lease, and an idle screen loses it", async () => {
    const one = screen("idle", "architecture", { renewEveryMs: 1 });
    one.ttlMs = 8_000;
    await one.session.edit();
    while (((await one.client.lock("idle")).renew_seq ?? 0) === 0) {
        one.tab.change("input");
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const { loss, mode } = await one.until(({ mode }) => mode === "viewing");
    assert.deepEqual([loss?.kind, mode, one.view.mayType], ["expired", "viewing", false]);
});

test("a lock that was taken away ends the editing, and says so", async () => {
    const one = screen("taken", "architecture");
    await one.session.edit();
    await daemon.command("unlock", "taken", "--yes", "--reason", "now");
    const { loss } = await one.until((view) => view.loss !== null);
    assert.equal(loss?.kind, "taken");
    assert.equal(one.view.mayType, false);
    one.session.dismiss();
    assert.equal(one.view.loss, null);
});

test("a switch keeps the lock without a gap, and its old token is not the current one any more", async () => {
    const one = screen("switched", "architecture", { user: "ana" });
    await one.session.edit();
    const before = one.session.lease?.token ?? 0;
    await one.session.switchTo("techstack");
    assert.equal(one.view.mayType, true);
    const lock = await one.client.lock("switched");
    assert.deepEqual([lock.holder, lock.user], ["techstack", "ana"]);
    assert.equal(lock.token, one.session.lease?.token);
    assert.equal(await one.client.check("switched", before), false);
    const events = await one.client.history("switched");
    assert.deepEqual(
        events.map(({ event }) => event),
        ["acquired", "transferred"],
    );
});

test("a tab goes on with what another tab of its browser edits, which keeps its draft first", async () => {
    const browser = new FakeBrowser();
    let kept = 0;
    const one = screen("own", "first tab", { beforeYield: () => void ++kept }, browser);
    const two = screen("own", "second tab", {}, browser);
    const stranger = screen("own", "other browser");
    await one.session.edit();
    const { obstacle } = await two.until(isHeldByOther);
    assert.ok(obstacle?.kind === "held" && obstacle.isOwn);
    const strange = (await stranger.until(isHeldByOther)).obstacle;
    assert.ok(strange?.kind === "held" && !strange.isOwn);
    await two.session.takeFromOwnTab();
    assert.equal(two.view.mayType, true);
    const { loss } = await one.until((view) => view.loss !== null);
    assert.deepEqual([loss?.kind, kept], ["handed_over", 1]);
    const events = await two.client.history("own");
    assert.deepEqual(
        events.map(({ event }) => event),
        ["acquired", "transferred"],
    );
});

test("a tab that sleeps does not keep its own browser from going on", async () => {
    const browser = new FakeBrowser();
    const one = screen("asleep", "first tab", {}, browser);
    const two = screen("asleep", "second tab", {}, browser);
    await one.session.edit();
    one.tab.freeze();
    await two.until(isHeldByOther);
    await two.session.takeFromOwnTab();
    assert.equal(two.view.mayType, true);
});

test("a page that is left gives the lock back, and takes it again when it comes back", async () => {
    const one = screen("left", "architecture");
    await one.session.edit();
    const first = one.session.lease?.token ?? 0;
    one.tab.change("left");
    assert.equal(one.view.mayType, false);
    await whenFree(one.client, one.feed, "left");
    one.tab.change("returned");
    await one.until(({ mayType }) => mayType);
    assert.ok((one.session.lease?.token ?? 0) > first);
});

test("a page that slept asks before it believes that it still holds", async () => {
    const one = screen("slept", "architecture");
    await one.session.edit();
    one.tab.change("returned");
    assert.equal(one.view.mode, "editing");
    assert.equal(one.view.mayType, false);
    await one.until(({ mayType }) => mayType);
    // While it sleeps it hears of nothing.
    await daemon.command("unlock", "slept", "--yes");
    one.tab.change("returned");
    assert.equal(one.view.mayType, false);
    assert.equal((await one.until(({ mode }) => mode === "viewing")).loss?.kind, "taken");
});

test("a request is approved by the holder, whose draft is kept before, and the asker edits", async () => {
    let kept = 0;
    const one = screen("asked", "architecture", { beforeYield: () => void ++kept });
    const two = screen("asked", "techstack");
    await one.session.edit();
    await two.session.requestOverride("a typo", 60_000);
    assert.equal(two.view.request?.state, "pending");
    const { question } = await one.until((view) => view.question !== null);
    assert.deepEqual([question?.holder, question?.reason], ["techstack", "a typo"]);
    await one.session.answer(question?.lock_id ?? "", "approve");
    await two.until(({ mayType }) => mayType);
    assert.equal((await one.until((view) => view.loss !== null)).loss?.kind, "handed_over");
    assert.equal(kept, 1);
});

test("a request is denied with a reason", async () => {
    const one = screen("denied", "architecture");
    const two = screen("denied", "techstack");
    await one.session.edit();
    await two.session.requestOverride("a typo", 60_000);
    const { question } = await one.until((view) => view.question !== null);
    await one.session.answer(question?.lock_id ?? "", "deny", "in ten minutes");
    const { request } = await two.until((view) => view.request?.state === "denied");
    assert.equal(request?.state === "denied" && request.reason, "in ten minutes");
    assert.equal(one.view.mayType, true);
});

test("whoever asked gets the lock when it is given back before an answer", async () => {
    const one = screen("freed", "architecture");
    const two = screen("freed", "techstack");
    await one.session.edit();
    await two.session.requestOverride("a typo", 600_000);
    await one.session.stop();
    await two.until(({ mayType }) => mayType);
});

test("nobody types while an excluding lock is held, and editing goes on afterwards", async () => {
    const one = screen("project/1/edit", "architecture", { excludedBy: "project/1/propagation" });
    await one.session.edit();
    const granted = await daemon.acquire("project/1/propagation");
    const { mayType, obstacle } = await one.until((view) => view.obstacle !== null);
    assert.deepEqual([mayType, obstacle?.kind], [false, "propagating"]);
    const two = screen("project/1/edit", "techstack", { excludedBy: "project/1/propagation" });
    await two.until((view) => view.obstacle?.kind === "propagating");
    await daemon.command("release", "project/1/propagation", "--lease", granted.lease);
    await one.until((view) => view.mayType);
});

test("what is to be done before editing can refuse it, and the lock is given back", async () => {
    const { HoldfastError } = await import("../../clients/js/src/errors");
    const error = new HoldfastError("refused", 412, { code: "E_FENCING_MISMATCH", message: "stale" });
    const one = screen("unprepared", "architecture", { prepare: () => Promise.reject(error) });
    await one.session.edit();
    assert.deepEqual([one.view.mode, one.view.failure?.code], ["viewing", "E_FENCING_MISMATCH"]);
    await whenFree(one.client, one.feed, "unprepared");
});

const hour = 3_600_000;

/** The wall clock of this machine is set, once or several times; the daemon's is another. */
function settableClock({ mock }: TestContext): (byMs: number) => void {
    let offset = 0;
    const real = Date.now.bind(Date);
    mock.method(Date, "now", () => real() + offset);
    return (byMs) => void (offset += byMs);
}

test("who types keeps the lock also when the clock of the machine is set back", async (context) => {
    const setClock = settableClock(context);
    const one = screen("set back", "architecture", { renewEveryMs: 1 });
    await one.session.edit();
    setClock(-hour);
    while (((await one.client.lock("set back")).renew_seq ?? 0) === 0) {
        one.tab.change("input");
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal(one.view.mayType, true);
});

test("a page that slept is told that it still holds, also when the clock is set right meanwhile", async (context) => {
    const setClock = settableClock(context);
    const one = screen("woken", "architecture");
    await one.session.edit();
    one.tab.change("returned");
    setClock(-hour);
    await one.until(({ mayType }) => mayType);
});

test("when the clock is set forward the lock is given back, and can be taken again at once", async (context) => {
    const setClock = settableClock(context);
    const one = screen("set forward", "architecture");
    await one.session.edit();
    setClock(hour);
    assert.equal(one.view.mayType, false, "the lease cannot be trusted any more");
    const { loss } = await one.until((view) => view.loss !== null);
    assert.equal(loss?.kind, "expired");
    await whenFree(one.client, one.feed, "set forward");
    await one.session.edit();
    assert.equal(one.view.mayType, true);
});

const page = (status: number): Response => new Response("<h1>No</h1>", { status });
const refusal = (status: number, code: string): Response =>
    new Response(JSON.stringify({ error: { code, message: "no" } }), { status });

for (const [what, answer] of [
    ["signed out", () => refusal(401, "E_DENIED")],
    ["without a right", () => refusal(403, "E_DENIED")],
    ["asked to wait by a gateway", () => page(429)],
    ["told by a gateway that the request is too long", () => page(413)],
    ["told by a gateway that nobody is there", () => page(502)],
    ["told that the store is away", () => refusal(503, "E_STORE_UNAVAILABLE")],
] as const)
    test(`a lease outlives a renewal that is refused for another reason: ${what}`, async () => {
        const one = screen(`refused ${what}`, "architecture", { renewEveryMs: 1 });
        await one.session.edit();
        let refused = 0;
        one.answers = (path) => (path === "/v1/renew" && ++refused <= 2 ? answer() : null);
        while (((await one.client.lock(`refused ${what}`)).renew_seq ?? 0) === 0) {
            one.tab.change("input");
            await new Promise((resolve) => setTimeout(resolve, 20));
        }
        assert.deepEqual([one.view.mode, one.view.loss, refused > 2], ["editing", null, true]);
    });

test("a lock that a gateway does not let be read is looked at again", async () => {
    const one = screen("behind a gateway", "architecture");
    one.answers = (path) => (path === "/v1/lock" ? page(413) : null);
    one.tab.change("returned");
    await one.until(({ isReachable }) => !isReachable);
    one.answers = () => null;
    await one.until(({ lock, isReachable }) => lock !== null && isReachable);
});

test("another user of the same browser is a stranger", async () => {
    const browser = new FakeBrowser();
    const one = screen("next user", "first tab", { user: "ana" }, browser);
    const two = screen("next user", "second tab", { user: "ben" }, browser);
    await one.session.edit();
    const { obstacle } = await two.until(isHeldByOther);
    assert.ok(obstacle?.kind === "held" && !obstacle.isOwn);
});

for (const whenUnreachable of ["warn", "read_only"] as const)
    test(`without the daemon, ${whenUnreachable}: when it is opened, edited, and when it comes back`, async () => {
        const own = new Daemon();
        await own.start();
        closing.push(() => own.remove());
        const mayType = whenUnreachable === "warn";
        const one = new Screen(new FakeBrowser().tab(), "away", "architecture", { whenUnreachable }, own.url);
        await one.session.edit();
        assert.equal(one.view.mayType, true);
        await own.stop("SIGKILL");
        const away = await one.until(({ isReachable }) => !isReachable);
        assert.deepEqual([away.mode, away.mayType], ["editing", mayType]);
        const two = new Screen(new FakeBrowser().tab(), "away too", "techstack", { whenUnreachable }, own.url);
        await two.session.edit();
        assert.deepEqual([two.view.mode, two.view.mayType], [mayType ? "unguarded" : "viewing", mayType]);
        await own.start();
        await one.until(({ isReachable }) => isReachable);
        assert.equal(one.view.mayType, true);
        // Typed without a lock: it is taken as soon as that can be.
        if (mayType) await two.until(({ mode }) => mode === "editing");
        else assert.equal((await two.until(({ isReachable }) => isReachable)).mode, "viewing");
    });
