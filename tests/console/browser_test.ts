import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { lockHash, openBrowser, rowOf, TestPage, type PageOptions } from "./browser";
import { Daemon } from "./daemon";

const daemon = new Daemon();
let browser: Browser;

before(async () => {
    [browser] = await Promise.all([openBrowser(), daemon.start()]);
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

const opened = (hash: string, options: PageOptions = {}): Promise<TestPage> =>
    TestPage.ofConsole(browser, daemon.url, hash, options);

test("a lock comes, is taken over in sight and goes without the page being loaded again", async () => {
    const view = await opened("");
    const { page } = view;
    await page.evaluate(() => Object.assign(window, { isTheSame: true }));
    const granted = await daemon.acquire("live/one", "--holder", "first", "--operation", "build", "-m", "release 42");
    const row = rowOf(page, "live/one");
    await row.getByText("first").waitFor();
    await row.getByText("release 42").waitFor();
    await row.getByText(String(granted.token)).waitFor();
    await row.getByText("Held", { exact: true }).waitFor();
    await daemon.command("transfer", "live/one", "--lease", granted.lease, "--to", "second");
    await row.getByText("second").waitFor();
    await daemon.command("unlock", "live/one", "--yes");
    await row.waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => "isTheSame" in window), true);
    await view.close();
});

test("a lease that runs out is shown as expired", async () => {
    await daemon.command("acquire", "expiring", "--ttl", "2s");
    const view = await opened("");
    await rowOf(view.page, "expiring").getByText("Expired").waitFor();
    await view.close();
    await daemon.acquire("expiring");
    await daemon.command("unlock", "expiring", "--yes");
});

test("waiters are counted", async () => {
    const granted = await daemon.acquire("queue");
    const waiter = daemon.command("acquire", "queue", "--wait", "5m", "--json");
    const view = await opened("");
    await rowOf(view.page, "queue").getByText("1 waiter").waitFor();
    await daemon.command("release", "queue", "--lease", granted.lease);
    const next = JSON.parse(await waiter) as { lease: string };
    await rowOf(view.page, "queue").getByText("1 waiter").waitFor({ state: "detached" });
    await daemon.command("release", "queue", "--lease", next.lease);
    await view.close();
});

test("search, prefix and my locks choose what is listed, and stay in the address", async () => {
    await daemon.acquire("find/apple", "--holder", "gardener", "--user", "anna");
    await daemon.acquire("find/pear", "--holder", "cook", "--user", "tom");
    await daemon.acquire("look/plum", "--holder", "cook", "-m", "jam");
    const view = await opened("");
    const { page } = view;
    const listed = async (...names: string[]): Promise<void> => {
        for (const name of ["find/apple", "find/pear", "look/plum"])
            await rowOf(page, name).waitFor({ state: names.includes(name) ? "visible" : "detached" });
    };
    await listed("find/apple", "find/pear", "look/plum");
    await page.getByLabel("Search").fill("JAM");
    await listed("look/plum");
    await page.getByLabel("Search").fill("");
    await page.getByLabel("Prefix").selectOption("find/");
    await listed("find/apple", "find/pear");
    await page.getByRole("button", { name: "My locks" }).click();
    await page.getByText("Who are you?").waitFor();
    await page.getByLabel("Your name").fill("tom");
    await listed("find/pear");
    await page.reload();
    await listed("find/pear");
    await page.getByLabel("Search").fill("nothing");
    await page.getByText("No lock fits.").waitFor();
    await page.getByRole("button", { name: "Show all locks" }).click();
    await listed("find/apple", "find/pear", "look/plum");
    for (const name of ["find/apple", "find/pear", "look/plum"]) await daemon.command("unlock", name, "--yes");
    await view.close();
});

test("breaking names holder and token, and its reason stands in the history", async () => {
    const granted = await daemon.acquire("break/me", "--holder", "victim");
    const view = await opened(lockHash("break/me"));
    const { page } = view;
    await page.getByRole("button", { name: "Break…" }).click();
    const dialog = page.getByRole("dialog", { name: "Break this lock?" });
    await dialog.getByText("break/me").waitFor();
    await dialog.getByText("victim").waitFor();
    await dialog.getByText(String(granted.token)).waitFor();
    await dialog.getByLabel("Reason").fill("the runner is gone");
    await dialog.getByRole("button", { name: "Break the lock" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("status").getByText("Broken: break/me").waitFor();
    await page.getByRole("cell", { name: "Broken", exact: true }).waitFor();
    await page.getByText("Nobody holds this lock.").waitFor();
    const history = await daemon.command("history", "break/me");
    assert.match(history, /broken.*the runner is gone/);
    await view.close();
});

test("a confirmation does not hit a later holder", async () => {
    await daemon.acquire("break/late", "--holder", "seen");
    const view = await opened(lockHash("break/late"));
    const { page } = view;
    await page.getByRole("button", { name: "Break…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("seen").waitFor();
    await daemon.command("unlock", "break/late", "--yes");
    await daemon.acquire("break/late", "--holder", "later");
    await dialog.getByRole("button", { name: "Break the lock" }).click();
    await dialog.getByText("Refused").waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByText("later").first().waitFor();
    const status = JSON.parse(await daemon.command("status", "break/late", "--json")) as { holder: string };
    assert.equal(status.holder, "later");
    await daemon.command("unlock", "break/late", "--yes");
    await view.close();
});

test("several locks are broken after one confirmation that names them all", async () => {
    const names = ["many/a", "many/b", "many/c"];
    const tokens = await Promise.all(names.map(async (name) => (await daemon.acquire(name)).token));
    const view = await opened("#/?prefix=many/");
    const { page } = view;
    for (const name of names) await page.getByLabel(`Select ${name}`).check();
    await page.getByText("3 locks selected").waitFor();
    await page.getByRole("button", { name: "Break…" }).click();
    const dialog = page.getByRole("dialog", { name: "Break 3 locks?" });
    for (const [i, name] of names.entries())
        await dialog.getByRole("listitem").filter({ hasText: name }).getByText(`token ${tokens[i]}`).waitFor();
    await dialog.getByRole("button", { name: "Break 3 locks" }).click();
    await page.getByText("Broken: 3 locks").waitFor();
    for (const name of names) await rowOf(page, name).waitFor({ state: "detached" });
    await view.close();
});

test("a lock is released with its lease, and with no other", async () => {
    const granted = await daemon.acquire("give/back");
    const view = await opened(lockHash("give/back"));
    const { page } = view;
    await page.getByRole("button", { name: "Release…" }).click();
    await page.getByLabel("Lease", { exact: true }).fill(`${granted.lock_id}.${"0".repeat(32)}`);
    await page.getByRole("button", { name: "Release the lock" }).click();
    await page.getByRole("dialog").getByText("could not be changed").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Release…" }).click();
    await page.getByLabel("Lease", { exact: true }).fill(granted.lease);
    await page.getByRole("button", { name: "Release the lock" }).click();
    await page.getByText("Nobody holds this lock.").waitFor();
    await page.getByRole("cell", { name: "Released" }).waitFor();
    await view.close();
});

test("requests come into the inbox, and are approved and denied", async () => {
    for (const name of ["ask/yes", "ask/no"]) {
        await daemon.acquire(name, "--holder", "owner");
        await daemon.command(
            "override",
            "request",
            name,
            "--holder",
            "asker",
            "--reason",
            `needs ${name}`,
            "--wait",
            "0",
        );
    }
    const view = await opened("#/requests");
    const { page } = view;
    const card = (name: string) => page.getByRole("article").filter({ hasText: name });
    await card("ask/yes").getByText("needs ask/yes").waitFor();
    await page.getByRole("link", { name: "Requests 2" }).waitFor();
    await card("ask/yes").getByRole("button", { name: "Approve…" }).click();
    await page.getByRole("dialog").getByText("owner").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
    await card("ask/yes").waitFor({ state: "detached" });
    await card("ask/no").getByRole("button", { name: "Deny…" }).click();
    await page.getByLabel("Reason").fill("not now");
    await page.getByRole("dialog").getByRole("button", { name: "Deny" }).click();
    await card("ask/no").waitFor({ state: "detached" });
    await page.getByText("No request is open.").waitFor();
    const holderOf = async (name: string): Promise<string> =>
        (JSON.parse(await daemon.command("status", name, "--json")) as { holder: string }).holder;
    assert.equal(await holderOf("ask/yes"), "asker");
    assert.equal(await holderOf("ask/no"), "owner");
    for (const name of ["ask/yes", "ask/no"]) await daemon.command("unlock", name, "--yes");
    await view.close();
});

test("a lock's page has its holds, its log, its chain and what is usual", async () => {
    const name = "story";
    for (let i = 0; i < 5; ++i) {
        const { lease } = await daemon.acquire(name, "--holder", `runner-${i % 2}`);
        await daemon.command("release", name, "--lease", lease);
    }
    await daemon.acquire(name, "--holder", "runner-2");
    await daemon.command("unlock", name, "--yes", "--reason", "stuck");
    await daemon.acquire(name, "--holder", "runner-3");
    const view = await opened(lockHash(name));
    const { page } = view;
    await page.getByText("Whole chain intact: 13 events").waitFor();
    await page.getByRole("img", { name: /^7 holds by 4 holders/ }).waitFor();
    assert.equal(await page.locator(".timeline .tl-mark-broken").count(), 1);
    await page.getByText(/Half of \d+ holds took at most/).waitFor();
    // Another event while one looks.
    await daemon.command("unlock", name, "--yes");
    await page.getByText("Whole chain intact: 14 events").waitFor();
    await page.getByText("Nobody holds this lock.").waitFor();
    await view.close();
});

test("a log that was changed in the store is said to be broken", async () => {
    await daemon.acquire("forged", "-m", "honest");
    await daemon.command("unlock", "forged", "--yes");
    const view = await TestPage.open(browser, "about:blank");
    await view.page.route("**/v1/history?*", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replace("honest", "forged") });
    });
    await view.page.goto(`${daemon.url}/${lockHash("forged")}`);
    await view.page.getByText("The chain is broken at event 1").waitFor();
    await view.close();
});

test("a browser that keeps nothing shows the console, and remembers its user for the page", async () => {
    await daemon.acquire("kept/nowhere", "--user", "anna");
    const view = await TestPage.open(browser, "about:blank");
    const { page } = view;
    await page.addInitScript(() => {
        Object.defineProperty(window, "localStorage", {
            get: () => {
                throw new DOMException("blocked", "SecurityError");
            },
        });
    });
    await page.goto(daemon.url);
    await rowOf(page, "kept/nowhere").waitFor();
    await page.getByRole("button", { name: /^Colours/ }).click();
    await page.getByRole("button", { name: "Colours: light" }).waitFor();
    await page.getByRole("button", { name: "My locks" }).click();
    await page.getByLabel("Your name").fill("anna");
    await rowOf(page, "kept/nowhere").waitFor();
    await daemon.command("unlock", "kept/nowhere", "--yes");
    await view.close();
});

test("all of it works from the keyboard, and focus comes back", async () => {
    await daemon.acquire("keys/a");
    await daemon.acquire("keys/b");
    const view = await opened("");
    const { page } = view;
    await rowOf(page, "keys/b").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("keys/");
    await rowOf(page, "keys/a").waitFor();
    await page.getByRole("link", { name: "keys/a" }).focus();
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "keys/b");
    await page.keyboard.press("x");
    await page.getByText("1 lock selected").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "keys/b" }).waitFor();
    await page.getByRole("button", { name: "Break…" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("name")), "reason");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Break…");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    for (const name of ["keys/a", "keys/b"]) await daemon.command("unlock", name, "--yes");
    await view.close();
});

test("a page that loses the daemon says so, keeps what it knows, and catches up", async () => {
    await daemon.acquire("away/before");
    const view = await opened("");
    const { page } = view;
    await rowOf(page, "away/before").waitFor();
    await daemon.stop("SIGKILL");
    await page.getByText("Offline").waitFor();
    await page.getByText(/What you see is how it was at/).waitFor();
    await rowOf(page, "away/before").waitFor();
    await daemon.acquire("away/meanwhile");
    await daemon.command("unlock", "away/before", "--yes");
    await daemon.start();
    await page.locator(".link[data-state=live]").waitFor();
    await rowOf(page, "away/meanwhile").waitFor();
    await rowOf(page, "away/before").waitFor({ state: "detached" });
    await page.getByText(/What you see is how it was at/).waitFor({ state: "hidden" });
    await daemon.command("unlock", "away/meanwhile", "--yes");
    await view.close();
});

test("what the daemon never answered is not said to be done, nor refused", async () => {
    await daemon.acquire("doubt");
    const view = await opened(lockHash("doubt"));
    const { page } = view;
    await page.route("**/v1/unlock", (route) => route.abort("connectionreset"));
    await page.getByRole("button", { name: "Break…" }).click();
    await page.getByRole("button", { name: "Break the lock" }).click();
    await page.getByRole("dialog").getByText("Nobody knows").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await daemon.command("unlock", "doubt", "--yes");
    await view.close();
});

test("the store's page has grade, reasons and what an examination finds", async () => {
    const view = await opened("#/store");
    const { page } = view;
    await page
        .locator(".grade")
        .filter({ hasText: /^[ABC]$/ })
        .waitFor();
    await page.getByText("Store id").waitFor();
    await page.getByRole("button", { name: "Examine" }).click();
    await page.getByRole("button", { name: "Examine again" }).waitFor();
    assert.ok((await page.locator(".checks li").count()) > 0);
    await view.close();
});
