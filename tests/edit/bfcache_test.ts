// A page that a real browser takes out of its back-forward cache: it asks before it believes that it holds.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import type * as Holdfast from "../../clients/js/src/index";
import { openBrowser, patience } from "../console/browser";
import { Daemon } from "../console/daemon";

declare const holdfast: typeof Holdfast;

interface Seen {
    seen: string[];
    session: Holdfast.EditSession;
}

const name = "bfcache";
const daemon = new Daemon();
const client = readFileSync(process.env["HOLDFAST_CLIENT_BUNDLE"] ?? "", "utf8");
let browser: Browser;

before(async () => {
    [browser] = await Promise.all([
        // Playwright switches the cache off.
        openBrowser([], ["--disable-back-forward-cache"]),
        daemon.start(),
    ]);
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

async function editing(page: Page): Promise<void> {
    page.setDefaultTimeout(patience);
    await page.goto(`${daemon.url}/healthz`);
    await page.evaluate(`${client}; globalThis.holdfast = holdfast;`);
    await page.evaluate(async (lock) => {
        const here = holdfast.thisBrowser("test");
        const seen: string[] = [];
        window.addEventListener("pageshow", ({ persisted }) => seen.push(persisted ? "restored" : "loaded"));
        const api = new holdfast.Client({ url: "" });
        const session = new holdfast.EditSession({
            client: api,
            feed: new holdfast.SharedFeed(api, here),
            browser: here,
            tab: await holdfast.tabIdentity(here),
            name: lock,
            holder: "screen",
            whenUnreachable: "warn",
            onChange: ({ mayType, obstacle }) => seen.push(mayType ? "may type" : (obstacle?.kind ?? "reads")),
        });
        await session.edit();
        Object.assign(window, { seen, session });
    }, name);
    await page.waitForFunction(() => (window as unknown as Seen).session.view.mayType);
}

/** Somewhere else, as a link leads there; then `meanwhile`; then back. */
async function awayAndBack(page: Page, meanwhile: () => Promise<unknown>): Promise<void> {
    await page.evaluate(() => (window as unknown as Seen).seen.splice(0));
    await page.goto(`${daemon.url.replace("127.0.0.1", "localhost")}/readyz`);
    await meanwhile();
    await page.evaluate(() => history.back()).catch(() => undefined);
    // A page that is restored is not loaded.
    await page.waitForURL("**/healthz", { waitUntil: "commit" });
    await page.waitForFunction(() => (window as unknown as Seen).seen.includes("restored"));
}

const seen = (page: Page): Promise<string[]> => page.evaluate(() => (window as unknown as Seen).seen);

test("a page that comes back finds that somebody else edits, and never believed otherwise", async () => {
    const page = await (await browser.newContext()).newPage();
    await editing(page);
    let lease = "";
    await awayAndBack(page, async () => {
        // It was given back when the page was left.
        ({ lease } = await daemon.acquire(name, "--wait", "20s"));
    });
    await page.waitForFunction(() => (window as unknown as Seen).session.view.obstacle?.kind === "held");
    assert.doesNotMatch((await seen(page)).join(), /may type/);
    await daemon.command("release", name, "--lease", lease);
    await page.context().close();
});

test("a page that comes back to a free lock asks for it, and edits under a new token", async () => {
    const page = await (await browser.newContext()).newPage();
    await editing(page);
    const token = (): Promise<number> => page.evaluate(() => (window as unknown as Seen).session.lease?.token ?? 0);
    const before = await token();
    let answer = (): void => {};
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await page.route("**/v1/acquire", async (route) => {
        await isAnswered;
        await route.continue();
    });
    await awayAndBack(page, () => Promise.resolve());
    assert.doesNotMatch((await seen(page)).join(), /may type/, "nobody has answered yet");
    answer();
    await page.waitForFunction(() => (window as unknown as Seen).session.view.mayType);
    assert.ok((await token()) > before);
    await page.context().close();
});
