// The parts of the client that only a real browser has: identities of tabs, and one stream of events for all of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import type * as Holdfast from "../../clients/js/src/index";
import { openBrowser, patience } from "../console/browser";
import { Daemon } from "../console/daemon";

declare const holdfast: typeof Holdfast;

const daemon = new Daemon();
const client = readFileSync(process.env["HOLDFAST_CLIENT_BUNDLE"] ?? "", "utf8");
let browser: Browser;

before(async () => {
    [browser] = await Promise.all([openBrowser(), daemon.start()]);
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

/** A page of the daemon's origin without any script but the client. */
async function loaded(page: Page): Promise<Page> {
    page.setDefaultTimeout(patience);
    await page.goto(`${daemon.url}/healthz`);
    return withClient(page);
}

async function withClient(page: Page): Promise<Page> {
    await page.waitForLoadState();
    // Evaluated by the browser's own debugger, so that no policy need allow it.
    await page.evaluate(`${client}; globalThis.holdfast = holdfast;`);
    return page;
}

/** A second tab that begins with the storage of the first one. */
async function duplicated(page: Page): Promise<Page> {
    const opening = page.context().waitForEvent("page");
    await page.evaluate(() => void window.open("/healthz"));
    const copy = await opening;
    await copy.waitForURL("**/healthz");
    return withClient(copy);
}

const identity = (page: Page): Promise<string> =>
    page.evaluate(() => holdfast.tabIdentity(holdfast.thisBrowser("test")));

test("a tab keeps its identity when it is loaded again, and a duplicated one has another", async () => {
    const context = await browser.newContext();
    const page = await loaded(await context.newPage());
    const first = await identity(page);
    await loaded(page);
    assert.equal(await identity(page), first);
    const copy = await duplicated(page);
    assert.equal(await copy.evaluate(() => sessionStorage.getItem("holdfast:tab")), first, "the storage was copied");
    assert.notEqual(await identity(copy), first);
    await context.close();
});

test("without Web Locks, too", async () => {
    const context = await browser.newContext();
    const withoutLocks = (page: Page): Promise<string> =>
        page.evaluate(() => holdfast.tabIdentity({ ...holdfast.thisBrowser("test"), locks: null }));
    const page = await loaded(await context.newPage());
    const first = await withoutLocks(page);
    const copy = await duplicated(page);
    assert.notEqual(await withoutLocks(copy), first);
    await context.close();
});

test("a page that may use neither storage nor Web Locks works all the same, and does not ask for ever", async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(patience);
    // A frame of somebody else's page, or a browser that blocks what sites keep.
    await page.route("**/sandboxed", (route) =>
        route.fulfill({
            contentType: "text/html",
            headers: { "Content-Security-Policy": "sandbox allow-scripts" },
            body: "",
        }),
    );
    await page.goto(`${daemon.url}/sandboxed`);
    await withClient(page);
    const found = await page.evaluate(async () => {
        const here = holdfast.thisBrowser("test");
        const refused = await here.locks?.request("x", () => "").catch((error: Error) => error.name);
        let asked = 0;
        const request = (...given: unknown[]): Promise<unknown> => {
            ++asked;
            return (navigator.locks.request as (...all: unknown[]) => Promise<unknown>).apply(navigator.locks, given);
        };
        const counting = { ...here, locks: { request } as unknown as LockManager };
        const tab = await holdfast.tabIdentity(counting);
        const kept = new holdfast.Drafts(here.storage, tab, "ana").keep("document", "typed", "1");
        asked = 0;
        new holdfast.SharedFeed(new holdfast.Client({ url: "" }), counting);
        // A feed that asks for ever would ask thousands of times meanwhile.
        for (let turn = 0; turn < 100; ++turn) await new Promise((resolve) => setTimeout(resolve));
        return { refused, tab, kept, asked };
    });
    assert.equal(found.refused, "SecurityError");
    assert.match(found.tab, /^[0-9a-f]{12}$/);
    assert.equal(found.kept, false);
    assert.equal(found.asked, 1);
    await context.close();
});

test("a tab whose storage is full has an identity", async () => {
    const context = await browser.newContext();
    const page = await loaded(await context.newPage());
    const id = await page.evaluate(() => {
        for (let size = 8_000_000; size > 0; size = Math.floor(size / 2))
            try {
                for (let i = 0; ; ++i) sessionStorage.setItem(`${size} ${i}`, "x".repeat(size));
            } catch {
                // Full for this size.
            }
        return holdfast.tabIdentity(holdfast.thisBrowser("test"));
    });
    assert.match(id, /^[0-9a-f]{12}$/);
    await context.close();
});

interface Listening {
    seen: string[];
    items: string[];
    feed: Holdfast.SharedFeed;
}

async function listen(page: Page, silenceMs: number): Promise<void> {
    await page.evaluate((silence) => {
        const feed = new holdfast.SharedFeed(new holdfast.Client({ url: "" }), holdfast.thisBrowser("test"), silence);
        const listening: Listening = { seen: [], items: [], feed };
        Object.assign(window, { listening });
        feed.listen((item) => {
            listening.items.push(item.kind);
            if (item.kind === "event") listening.seen.push(`${item.event.name} ${item.event.event}`);
        });
    }, silenceMs);
    await page.waitForFunction(() => (window as unknown as { listening: Listening }).listening.items.includes("ready"));
}

const seen = (page: Page): Promise<string[]> =>
    page.evaluate(() => (window as unknown as { listening: Listening }).listening.seen);

async function until(page: Page, event: string): Promise<void> {
    await page.waitForFunction(
        (wanted) => (window as unknown as { listening: Listening }).listening.seen.includes(wanted),
        event,
    );
}

async function tabs(
    context: BrowserContext,
    count: number,
    silenceMs = patience,
): Promise<{ pages: Page[]; streams: () => Page[] }> {
    const streams: Page[] = [];
    const pages: Page[] = [];
    for (let i = 0; i < count; ++i) {
        const page = await loaded(await context.newPage());
        page.on("request", (request) => {
            if (request.url().includes("/v1/events")) streams.push(page);
        });
        await listen(page, silenceMs);
        pages.push(page);
    }
    return { pages, streams: () => streams };
}

test("ten tabs have one stream of events, and when its tab is closed another one goes on where it ended", async () => {
    const context = await browser.newContext();
    const { pages, streams } = await tabs(context, 10);
    const { lease } = await daemon.acquire("shared");
    for (const page of pages) await until(page, "shared acquired");
    assert.deepEqual([...new Set(streams())], [pages[0]]);
    await pages[0]?.close();
    await daemon.command("release", "shared", "--lease", lease);
    for (const page of pages.slice(1)) {
        await until(page, "shared released");
        assert.deepEqual(await seen(page), ["shared acquired", "shared released"]);
    }
    assert.equal(new Set(streams()).size, 2);
    await context.close();
});

test("a tab that is seen does not follow one that sleeps", async () => {
    const context = await browser.newContext();
    const { pages, streams } = await tabs(context, 2, 2_000);
    const [leader, follower] = pages as [Page, Page];
    assert.deepEqual([...new Set(streams())], [leader]);
    // A page that does not run: its lock stays where it is.
    const debugging = await context.newCDPSession(leader);
    await debugging.send("Debugger.enable");
    await debugging.send("Debugger.pause");
    const stuck = leader.evaluate(() => 1).catch(() => 0);
    await follower.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await daemon.acquire("awake");
    await until(follower, "awake acquired");
    assert.deepEqual([...new Set(streams())], [leader, follower]);
    await context.close();
    await stuck;
});
