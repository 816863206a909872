// What anybody may write, in the pages of the console.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { lockHash, openBrowser, TestPage, type PageOptions } from "./browser";
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

test("names and reasons made of markup, escapes and other directions do no harm", async () => {
    const evil = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    const name = `evil/${evil.replace(/[\s/]/g, "_")}`;
    await daemon.post("/v1/acquire", {
        name,
        ttl_ms: 600_000,
        holder: evil,
        user: `\u202e${evil}`,
        operation: `\u2066${evil}`,
        reason: `שלום ${evil}`,
        meta: { [`\u202e${evil}`]: `\u200f${evil}` },
    });
    await daemon.command(
        "override",
        "request",
        name,
        "--holder",
        `${evil}\u200f`,
        "--reason",
        `${evil}\u202e`,
        "--wait",
        "0",
    );
    for (const hash of ["", lockHash(name), "#/requests"]) {
        const view = await opened(hash);
        const { page } = view;
        await page.getByText("<img src=x").first().waitFor();
        assert.equal(await page.locator("main img, main script, main .untrusted *:not(.escape)").count(), 0);
        assert.doesNotMatch(await page.locator("main").innerText(), /[\u2066\u202e\u200f]/);
        if (hash !== "#/requests") await page.getByText("\\u202e").first().waitFor();
        await view.close();
    }
    const view = await opened(lockHash(name));
    await view.page.getByRole("button", { name: "Break…" }).click();
    await view.page.getByRole("dialog").getByText("<img src=x").first().waitFor();
    await view.page.getByRole("button", { name: "Break the lock" }).click();
    await view.page.getByText("Nobody holds this lock.").waitFor();
    await view.close();
});

test("names and reasons as long as they may be leave a page as wide as it is", async () => {
    const name = `long/${"W".repeat(250)}`;
    await daemon.post("/v1/acquire", {
        name,
        ttl_ms: 600_000,
        holder: "W".repeat(255),
        user: "\u202eW".repeat(60),
        operation: "W".repeat(255),
        reason: "語".repeat(340),
    });
    const question = ["--holder", "V".repeat(255), "--reason", "V".repeat(1_000), "--wait", "0"];
    await daemon.command("override", "request", name, ...question);
    for (const hash of ["", lockHash(name), "#/requests"])
        for (const phone of [false, true]) {
            const view = await opened(hash, { phone });
            await view.page.getByText("WWWW").first().waitFor();
            const isWider = await view.page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
            assert.equal(isWider, false, `${hash} ${phone ? "on a telephone" : ""}`);
            await view.close();
        }
    await daemon.command("unlock", name, "--yes");
});
