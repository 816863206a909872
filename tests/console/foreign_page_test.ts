// Goal: a page of another origin can neither read nor change anything of a daemon, in a browser that is signed in to it.
// Method: such pages, of another port of the same host, of another site, and of a name that leads to the daemon itself
// (DNS rebinding), try whatever a browser lets a page do. All that the daemon answers is looked at, and its history
// afterwards.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import { after, before, test } from "node:test";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { openBrowser } from "./browser";
import { Daemon, type Granted } from "./daemon";

/** Cookies of the browser are shown to it. */
const guarded = new Daemon();
/** Whoever reaches it may do everything. */
const open = new Daemon();
const tokens = join(guarded.folder, "tokens");
/** Serves an empty page under any name. */
const elsewhere: Server = createServer((_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><title>elsewhere</title>");
});
let elsewherePort = 0;
let browser: Browser;
let token = "";

before(async () => {
    token = (await guarded.command("token", "create", "mara", "--grant", "admin", "--token-file", tokens, "-q")).trim();
    guarded.options.push("--token-file", tokens);
    await new Promise<void>((listens) => elsewhere.listen(0, "127.0.0.1", listens));
    elsewherePort = (elsewhere.address() as { port: number }).port;
    [browser] = await Promise.all([
        openBrowser(["--host-resolver-rules=MAP *.example 127.0.0.1"]),
        guarded.start(),
        open.start(),
    ]);
});

after(async () => {
    await browser?.close();
    elsewhere.close();
    await Promise.all([guarded.remove(), open.remove()]);
});

interface Answered {
    what: string;
    status: number;
}

/** Everything that is sent to `daemon` out of the context, and how it was answered. */
function watch(context: BrowserContext, daemon: Daemon): Answered[] {
    const answered: Answered[] = [];
    const { port } = new URL(daemon.url);
    context.on("response", (response) => {
        const url = new URL(response.url());
        if (url.port === port)
            answered.push({ what: `${response.request().method()} ${url.pathname}`, status: response.status() });
    });
    return answered;
}

/** What the page can do to the daemon at `url`. The result: what it could read, and what it could only send. */
async function attack(page: Page, url: string, victim: Granted): Promise<{ read: string[]; sent: string[] }> {
    return page.evaluate(
        async ({ url, victim }) => {
            const read: string[] = [];
            const sent: string[] = [];
            const textOf = (frame: HTMLIFrameElement): string | undefined => {
                try {
                    // Under a foreign name the page may read why it was refused.
                    const text = frame.contentDocument?.body.textContent ?? "";
                    return /somebody|mara|stolen|holdfast_/.test(text) ? text : undefined;
                } catch {
                    return undefined;
                }
            };
            const acquire = JSON.stringify({ name: "stolen", holder: "a foreign page" });
            const unlock = JSON.stringify({ name: victim.name, lock_id: victim.lock_id, reason: "a foreign page" });
            const asked = async (what: string, path: string, init: RequestInit): Promise<void> => {
                try {
                    const response = await fetch(url + path, { credentials: "include", ...init });
                    const text = await response.text();
                    sent.push(what);
                    if (response.type !== "opaque" && response.ok) read.push(`${what}: ${text}`);
                } catch {
                    sent.push(`${what}, refused`);
                }
            };
            for (const path of ["/v1/locks", "/v1/history", "/v1/session", "/v1/store", "/metrics"]) {
                await asked(`GET ${path}`, path, {});
                await asked(`GET ${path} unseen`, path, { mode: "no-cors" });
            }
            for (const [path, body] of [
                ["/v1/acquire", acquire],
                ["/v1/unlock", unlock],
            ] as const) {
                // As a form could send it: nobody is asked before.
                await asked(`POST ${path}`, path, { method: "POST", body });
                await asked(`POST ${path} unseen`, path, { method: "POST", body, mode: "no-cors" });
                const headers = { "Holdfast-Csrf": "1", "Content-Type": "application/json" };
                await asked(`POST ${path} with the header`, path, { method: "POST", body, headers });
                navigator.sendBeacon(url + path, body);
                navigator.sendBeacon(url + path, new Blob([body], { type: "text/plain" }));
            }
            await asked("DELETE /v1/session", "/v1/session", { method: "DELETE" });
            await asked("POST /v1/session", "/v1/session", { method: "POST", body: '{"token":"x"}', mode: "no-cors" });

            const settled = (what: string, begin: (done: (told?: string) => void) => void): Promise<void> =>
                new Promise((resolve) => {
                    begin((told) => {
                        sent.push(what);
                        if (told !== undefined) read.push(`${what}: ${told}`);
                        resolve();
                    });
                });
            await settled("EventSource", (done) => {
                const source = new EventSource(`${url}/v1/events`, { withCredentials: true });
                const end = (told?: string): void => {
                    source.close();
                    done(told);
                };
                source.onopen = () => end("it opened");
                source.onerror = () => end();
                for (const kind of ["acquired", "ready", "message"]) source.addEventListener(kind, () => end(kind));
            });
            await settled("WebSocket", (done) => {
                const socket = new WebSocket(`${url.replace("http", "ws")}/v1/events`);
                socket.onopen = () => done("it opened");
                socket.onerror = () => done();
            });
            for (const path of ["/v1/locks", "/metrics"]) {
                await settled(`script ${path}`, (done) => {
                    const script = document.createElement("script");
                    script.src = url + path;
                    script.onload = () => done("it ran");
                    script.onerror = () => done();
                    document.head.append(script);
                });
                await settled(`frame ${path}`, (done) => {
                    const frame = document.createElement("iframe");
                    frame.src = url + path;
                    frame.onload = () => done(textOf(frame));
                    document.body.append(frame);
                });
            }
            for (const [path, body] of [
                ["/v1/acquire", acquire],
                ["/v1/unlock", unlock],
            ] as const)
                await settled(`form ${path}`, (done) => {
                    const frame = document.createElement("iframe");
                    frame.name = `answer ${path}`;
                    document.body.append(frame);
                    const form = document.createElement("form");
                    form.method = "post";
                    form.enctype = "text/plain";
                    form.action = url + path;
                    form.target = frame.name;
                    // `NAME=VALUE` is the body, and a document of JSON.
                    const input = document.createElement("input");
                    input.name = `${body.slice(0, -1)},"meta":{"x":"`;
                    input.value = '"}}';
                    form.append(input);
                    document.body.append(form);
                    frame.onload = () => done(textOf(frame));
                    form.submit();
                });
            return { read, sent };
        },
        { url, victim },
    );
}

/** A profile that is signed in where that is possible, and the lock that somebody holds. */
async function visitorOf(daemon: Daemon): Promise<{ context: BrowserContext; victim: Granted }> {
    const victim = await daemon.acquire(`held/${Math.random()}`, "--holder", "somebody");
    const context = await browser.newContext();
    if (daemon === guarded) {
        const page = await context.newPage();
        await page.goto(daemon.url);
        await page.getByLabel("Token").fill(token);
        await page.getByRole("button", { name: "Sign in" }).click();
        await page.locator(".link[data-state=live]").waitFor();
        // It is good for something where it belongs.
        assert.equal(await page.evaluate(async () => (await fetch("/v1/locks")).status), 200);
        await page.close();
    }
    return { context, victim };
}

async function events(daemon: Daemon): Promise<number> {
    return (JSON.parse(await daemon.command("history", "--json")) as { events: unknown[] }).events.length;
}

async function expectNothingReached(daemon: Daemon, origin: string): Promise<void> {
    const { context, victim } = await visitorOf(daemon);
    const there = await events(daemon);
    const answered = watch(context, daemon);
    const page = await context.newPage();
    await page.goto(origin);
    const { read, sent } = await attack(page, daemon.url, victim);
    assert.deepEqual(read, []);
    assert.ok(sent.length > 20, `only ${sent.join("; ")}`);

    // By a link, and in a window of its own, which stays out of reach.
    const popup = page.waitForEvent("popup");
    await page.evaluate((to) => void window.open(to), `${daemon.url}/v1/locks`);
    const opened = await popup;
    await opened.waitForLoadState();
    assert.doesNotMatch(await opened.content(), /somebody/);
    await page.evaluate((to) => location.assign(to), `${daemon.url}/v1/history`);
    await page.waitForURL(/v1.history/);
    assert.doesNotMatch(await page.content(), /somebody/);

    const posts = answered.filter(({ what }) => what.startsWith("POST /v1/acquire"));
    assert.ok(posts.length >= 3, `only ${JSON.stringify(answered)} came to the daemon`);
    for (const { what, status } of answered) assert.equal(status, 403, `${what} from ${origin}`);
    assert.equal(await events(daemon), there);
    await context.close();
}

for (const [name, daemon] of [
    ["a daemon that knows its callers", guarded],
    ["an open daemon", open],
] as const) {
    test(`${name} is out of reach of a page of another port`, async () => {
        await expectNothingReached(daemon, `http://127.0.0.1:${elsewherePort}/`);
    });

    test(`${name} is out of reach of a page of another site`, async () => {
        await expectNothingReached(daemon, `http://attacker.example:${elsewherePort}/`);
    });

    test(`${name} does not answer to a foreign name that leads to it`, async () => {
        const { context, victim } = await visitorOf(daemon);
        const there = await events(daemon);
        const rebound = `http://rebound.example:${new URL(daemon.url).port}`;
        const page = await context.newPage();
        const answered = watch(context, daemon);
        // What the browser takes for the same origin is refused by the name alone.
        await page.goto(`${rebound}/`);
        const { read } = await attack(page, rebound, victim);
        assert.deepEqual(read, []);
        assert.ok(answered.length > 20);
        for (const { what, status } of answered) assert.equal(status, 421, what);
        assert.equal(await events(daemon), there);
        await context.close();
    });
}
