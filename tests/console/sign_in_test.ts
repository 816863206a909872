import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { openBrowser, TestPage } from "./browser";
import { Daemon } from "./daemon";

const daemon = new Daemon();
const tokens = join(daemon.folder, "tokens");
let browser: Browser;

async function tokenOf(user: string, ...grants: string[]): Promise<string> {
    const flags = grants.flatMap((grant) => ["--grant", grant]);
    return (await daemon.command("token", "create", user, ...flags, "--token-file", tokens, "-q")).trim();
}

let admin = "";
let viewer = "";

before(async () => {
    admin = await tokenOf("mara", "admin");
    viewer = await tokenOf("paul", "viewer", "admin:paul");
    daemon.options.push("--token-file", tokens);
    await daemon.acquire("shared/lock", "--holder", "somebody");
    await daemon.acquire("paul/lock", "--holder", "somebody");
    [browser] = await Promise.all([openBrowser(), daemon.start()]);
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

async function signIn(page: Page, token: string): Promise<void> {
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.locator(".link[data-state=live]").waitFor();
}

test("a page asks for a token, refuses a wrong one and lets the right one in", async () => {
    const view = await TestPage.open(browser, daemon.url);
    const { page } = view;
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await view.screenshot("sign-in");
    await view.checkAccessibility("sign-in");
    await page.getByLabel("Token").fill("hft_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("This token is not accepted").waitFor();
    await signIn(page, admin);
    await page.locator(".user").getByText("mara").waitFor();
    await page.getByRole("row").filter({ hasText: "shared/lock" }).waitFor();
    // A script of the page cannot read what proves the session.
    assert.equal(await page.evaluate(() => document.cookie), "");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await view.close();
});

test("an administrator breaks a lock, and the audit log has the name that the token proves", async () => {
    const view = await TestPage.open(browser, `${daemon.url}/#/lock/shared%2Flock`);
    const { page } = view;
    await signIn(page, admin);
    await page.getByRole("button", { name: "Break…" }).click();
    await page.getByRole("button", { name: "Break the lock" }).click();
    await page.getByText("Nobody holds this lock.").waitFor();
    assert.match(await daemon.command("history", "shared/lock"), /broken.*mara/);
    await view.close();
});

test("a button is there only where the session's role allows what it does", async () => {
    await daemon.acquire("shared/lock");
    const view = await TestPage.open(browser, `${daemon.url}/#/lock/shared%2Flock`);
    const { page } = view;
    await signIn(page, viewer);
    await page.getByText("Whole chain intact").waitFor();
    assert.equal(await page.getByRole("button", { name: /Break|Release/ }).count(), 0);
    await page.goto(`${daemon.url}/#/lock/paul%2Flock`);
    await page.getByRole("button", { name: "Break…" }).waitFor();
    await view.close();
});

test("a page that is looked at again shows in whose name it acts by now", async () => {
    const view = await TestPage.open(browser, `${daemon.url}/#/lock/shared%2Flock`);
    const { page } = view;
    await signIn(page, admin);
    await page.getByRole("button", { name: "Break…" }).waitFor();
    // As another tab of this browser would.
    const status = await page.evaluate(async (token) => {
        const headers = { "Content-Type": "application/json", "Holdfast-Csrf": "1" };
        const body = JSON.stringify({ token });
        return (await fetch("/v1/session", { method: "POST", headers, body })).status;
    }, viewer);
    assert.equal(status, 200);
    await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
    await page.locator(".user").getByText("paul").waitFor();
    await page.getByText("Whole chain intact").waitFor();
    assert.equal(await page.getByRole("button", { name: "Break…" }).count(), 0);
    await view.close();
});

test("a token that is revoked ends the session of a page that is open", async () => {
    const token = await tokenOf("guest", "viewer");
    const view = await TestPage.open(browser, daemon.url);
    const { page } = view;
    await signIn(page, token);
    await daemon.command("token", "revoke", token.split("_")[1] ?? "", "--token-file", tokens);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await view.close();
});
