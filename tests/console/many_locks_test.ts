// A console with many locks, at which much happens: it stays usable, and how fast it draws is told, not judged.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { openBrowser, rowOf, TestPage } from "./browser";
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

test("2,000 locks and 50 events a second", async (context) => {
    const names = Array.from({ length: 2000 }, (_, i) => `load/group-${i % 40}/job-${String(i).padStart(4, "0")}`);
    const leases: Array<{ name: string; lease: string }> = [];
    for (let i = 0; i < names.length; i += 250) {
        const requests = names
            .slice(i, i + 250)
            .map((name) => ({ op: "acquire", name, ttl_ms: 3_600_000, holder: "load" }));
        const { replies } = await daemon.post<{ replies: Array<{ name: string; lease: string }> }>("/v1/batch", {
            requests,
        });
        leases.push(...replies);
    }
    const view = await TestPage.ofConsole(browser, daemon.url, "#/?prefix=load/");
    const { page } = view;
    await page.locator("table[aria-rowcount='2001']").waitFor();
    const seconds = 4;
    const debugging = await page.context().newCDPSession(page);
    await debugging.send("Performance.enable");
    /** For how long the page has been at work since it was opened. */
    const busySeconds = async (): Promise<number> =>
        (await debugging.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0;
    const busyBefore = await busySeconds();
    const frames = page.evaluate(
        (span) =>
            new Promise<number[]>((resolve) => {
                const times: number[] = [];
                let last = performance.now();
                const end = last + span;
                const next = (now: number): void => {
                    times.push(now - last);
                    last = now;
                    window.scrollBy(0, now % 2000 < 1000 ? 40 : -40);
                    if (now < end) requestAnimationFrame(next);
                    else resolve(times);
                };
                requestAnimationFrame(next);
            }),
        seconds * 1000,
    );
    for (let i = 0; i < seconds * 10; ++i) {
        const requests = leases
            .slice(5 * i, 5 * i + 5)
            .map(({ name, lease }) => ({ op: "renew", name, lease, ttl_ms: 7_200_000 }));
        const pause = new Promise((resolve) => setTimeout(resolve, 100));
        await daemon.post("/v1/batch", { requests });
        await pause;
    }
    const times = (await frames).sort((a, b) => a - b);
    const at = (part: number): string => (times[Math.floor(part * (times.length - 1))] ?? 0).toFixed(1);
    const busy = Math.round((100 * (await busySeconds()) - 100 * busyBefore) / seconds);
    context.diagnostic(`frame times in ms: p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, longest ${at(1)}`);
    context.diagnostic(`the page was at work for ${busy} % of the time`);
    assert.ok((await page.locator("tbody tr").count()) < 100, "only the rows in sight are in the page");
    await page.getByLabel("Search").fill("job-0000");
    await rowOf(page, "load/group-0/job-0000")
        .getByText(/1 h 59 min/)
        .waitFor();
    await page.getByLabel("Search").fill("");
    await page.getByLabel("Select all that are listed").check();
    await page.getByRole("button", { name: "Break…" }).click();
    await page.getByRole("button", { name: "Break 2,000 locks" }).click();
    await page.getByText("No lock fits.").waitFor();
    await view.close();
});
