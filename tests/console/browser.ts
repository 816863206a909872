// The browser that the tests share, and what every page of a test begins with.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import { chromium, type Browser, type BrowserContext, type Locator, type Page } from "playwright-core";

export const patience = 60_000;

/** `flags`: beside those that every test has. `without`: flags that Playwright has for all, and this test has not. */
export async function openBrowser(flags: string[] = [], without: string[] = []): Promise<Browser> {
    return chromium.launch({
        ignoreDefaultArgs: without,
        timeout: 2 * patience,
        executablePath: process.env["HOLDFAST_CHROMIUM"] ?? "/usr/bin/chromium",
        args: [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            ...flags,
        ],
    });
}

export const rowOf = (page: Page, name: string): Locator => page.getByRole("row").filter({ hasText: name });
export const lockHash = (name: string): string => `#/lock/${encodeURIComponent(name)}`;

export interface PageOptions {
    dark?: boolean;
    phone?: boolean;
}

/** A page in a profile of its own. Anything that looks like script of somebody else fails the test that closes it. */
export class TestPage {
    readonly complaints: string[] = [];

    private constructor(readonly page: Page) {
        page.setDefaultTimeout(patience);
        page.on("pageerror", (error) => this.complaints.push(error.message));
        page.on("dialog", (dialog) => {
            this.complaints.push(`a script of somebody else said ${dialog.message()}`);
            void dialog.dismiss();
        });
        page.on("console", (message) => {
            if (/Content Security Policy/.test(message.text())) this.complaints.push(message.text());
        });
        page.on("request", (request) => {
            if (new URL(request.url()).hostname !== "127.0.0.1") this.complaints.push(`it asked ${request.url()}`);
        });
    }

    static async open(browser: Browser, address: string, options: PageOptions = {}): Promise<TestPage> {
        const context = await browser.newContext({
            viewport: options.phone ? { width: 390, height: 844 } : { width: 1360, height: 860 },
            deviceScaleFactor: options.phone ? 2 : 1,
            colorScheme: options.dark ? "dark" : "light",
            reducedMotion: "reduce",
        });
        const opened = await TestPage.in(context);
        await opened.page.goto(address);
        return opened;
    }

    /** A page of a daemon's console that follows what happens. */
    static async ofConsole(browser: Browser, url: string, hash: string, options: PageOptions = {}): Promise<TestPage> {
        const opened = await TestPage.open(browser, `${url}/${hash}`, options);
        await opened.page.locator(".link[data-state=live]").waitFor();
        return opened;
    }

    /** Another page of a profile that is there. */
    static async in(context: BrowserContext): Promise<TestPage> {
        return new TestPage(await context.newPage());
    }

    /** One that a page has opened. */
    static of(page: Page): TestPage {
        return new TestPage(page);
    }

    async close(): Promise<void> {
        await this.page.context().close();
        assert.deepEqual(this.complaints, []);
    }

    /** Fails on what axe calls serious or critical. */
    async checkAccessibility(where: string): Promise<void> {
        const source = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
        // Evaluated by the browser's own debugger, so that the page's policy need not allow it.
        await this.page.evaluate(source);
        const serious = await this.page.evaluate(async () => {
            const { violations } = await (
                window as unknown as {
                    axe: { run(): Promise<{ violations: Array<{ id: string; impact: string; nodes: unknown[] }> }> };
                }
            ).axe.run();
            return violations
                .filter(({ impact }) => impact === "serious" || impact === "critical")
                .map(({ id, nodes }) => `${id}: ${JSON.stringify(nodes).slice(0, 400)}`);
        });
        assert.deepEqual(serious, [], where);
    }

    async screenshot(name: string): Promise<void> {
        const folder = process.env["HOLDFAST_SCREENSHOTS"];
        if (folder) await this.page.screenshot({ path: join(folder, `${name}.png`) });
    }
}
