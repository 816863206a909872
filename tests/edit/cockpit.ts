// The sample application with a daemon of its own, and people who open its pages.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before } from "node:test";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import type { AuditEvent, Lock } from "../../clients/js/src/documents";
import { openBrowser, TestPage, patience } from "../console/browser";

const script = process.env["COCKPIT_START"] ?? "";
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export class Cockpit {
    readonly folder = mkdtempSync(join(tmpdir(), "holdfast-cockpit-"));
    url = "";
    private child: ChildProcess | null = null;
    private daemon: ChildProcess | null = null;

    /** `more`: a file of policies, and what else start.sh takes after it. */
    constructor(private readonly more: (folder: string) => string[] = () => []) {}

    async start(): Promise<void> {
        this.child = spawn(script, [this.folder, ...this.more(this.folder)], { stdio: "ignore" });
        const ends = performance.now() + patience;
        while (!existsSync(join(this.folder, "cockpit.port"))) {
            assert.ok(this.child.exitCode === null && performance.now() < ends, "the sample did not start");
            await pause(20);
        }
        this.url = `http://127.0.0.1:${this.read("cockpit.port")}`;
    }

    async remove(): Promise<void> {
        if (this.daemon) await this.stopDaemon();
        const { child } = this;
        if (child?.exitCode === null) {
            const ended = new Promise((resolve) => child.once("exit", resolve));
            child.kill("SIGTERM");
            await ended;
        }
        rmSync(this.folder, { recursive: true, force: true });
    }

    /** The daemon alone; the sample goes on. */
    async stopDaemon(): Promise<void> {
        const pid = this.daemon?.pid ?? Number(this.read("daemon.pid"));
        try {
            process.kill(pid, "SIGKILL");
        } catch {
            return;
        }
        while (isAlive(pid)) await pause(20);
    }

    async startDaemon(): Promise<void> {
        this.daemon = spawn("sh", [join(this.folder, "daemon.cmd")], { stdio: "ignore" });
        const health = `http://127.0.0.1:${this.read("daemon.port")}/healthz`;
        const ends = performance.now() + patience;
        const answers = (): Promise<boolean> =>
            fetch(health).then(
                ({ ok }) => ok,
                () => false,
            );
        while (!(await answers())) {
            assert.ok(performance.now() < ends, "the daemon did not start again");
            await pause(50);
        }
    }

    /** Closes all browsers, and frees what their pages could not give back any more. */
    async clear(): Promise<void> {
        await Person.leaveAll();
        const { locks } = await this.ask<{ locks: Lock[] }>("GET", "/v1/locks?prefix=project/");
        for (const { name, lock_id } of locks)
            await this.ask("POST", "/v1/unlock", { name, lock_id, reason: "the test is over" });
    }

    /** Asks the daemon as an administrator. A refusal is an answer, too. */
    private async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
        const response = await fetch(`http://127.0.0.1:${this.read("daemon.port")}${path}`, {
            method,
            headers: { Authorization: `Bearer ${this.read("tokens/olga.token")}`, "Content-Type": "application/json" },
            body: body === undefined ? null : JSON.stringify(body),
        });
        return (await response.json()) as T;
    }

    private read(name: string): string {
        return readFileSync(join(this.folder, name), "utf8").trim();
    }
}

/** A process that has ended and waits to be collected is not alive. */
function isAlive(pid: number): boolean {
    try {
        return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    } catch {
        return false;
    }
}

export interface Place {
    cockpit: Cockpit;
    browser: () => Browser;
    /** Somebody who is there. */
    person: (user: string, dark?: boolean) => Promise<Person>;
}

/** What every test of pages begins and ends with: a sample of its own, a browser, and nobody left in it afterwards. */
export function inCockpit(more?: (folder: string) => string[]): Place {
    const cockpit = new Cockpit(more);
    let opened: Browser | undefined;
    const browser = (): Browser => {
        assert.ok(opened, "the browser is not there yet");
        return opened;
    };
    before(async () => {
        await cockpit.start();
        opened = await openBrowser();
    });
    afterEach(async () => cockpit.clear());
    after(async () => {
        await opened?.close();
        await cockpit.remove();
    });
    return { cockpit, browser, person: (user, dark) => Person.at(cockpit, browser(), user, dark) };
}

/** Somebody with a browser of their own, signed in. */
export class Person {
    private static readonly all = new Set<Person>();
    private readonly pages: TestPage[] = [];

    private constructor(
        readonly cockpit: Cockpit,
        readonly context: BrowserContext,
    ) {
        Person.all.add(this);
    }

    static async leaveAll(): Promise<void> {
        const people = [...Person.all];
        Person.all.clear();
        await Promise.all(people.map((person) => person.leave()));
    }

    static async at(cockpit: Cockpit, browser: Browser, user: string, dark = false): Promise<Person> {
        const first = await TestPage.open(browser, cockpit.url, { dark });
        await first.page.getByRole("button", { name: user, exact: true }).click();
        await first.page.getByRole("heading", { name: "Projects" }).waitFor();
        await first.page.close();
        return new Person(cockpit, first.page.context());
    }

    async open(project: string, dashboard: string, query = ""): Promise<Tab> {
        const page = await TestPage.in(this.context);
        this.pages.push(page);
        await page.page.goto(`${this.cockpit.url}/p/${project}/${dashboard}${query}`);
        const tab = new Tab(page);
        await tab.ready();
        return tab;
    }

    /** As the browser's "Duplicate tab" does it: the same page, beginning with a copy of the tab's storage. */
    async duplicate({ page }: Tab): Promise<Tab> {
        const opening = this.context.waitForEvent("page");
        await page.evaluate(() => void window.open(location.href));
        const copied = TestPage.of(await opening);
        this.pages.push(copied);
        const tab = new Tab(copied);
        await tab.ready();
        return tab;
    }

    /** It hears of nothing, and gives nothing back. */
    async kill({ page }: Tab): Promise<void> {
        const debugging = await this.context.newCDPSession(page);
        const isGone = page.waitForEvent("crash");
        void debugging.send("Page.crash").catch(() => undefined);
        await isGone;
    }

    private async leave(): Promise<void> {
        await this.context.unrouteAll({ behavior: "ignoreErrors" });
        // A page that is closed gives its lock back.
        await Promise.all(this.context.pages().map((page) => page.goto("about:blank").catch(() => undefined)));
        await this.context.close();
        assert.deepEqual(
            this.pages.flatMap(({ complaints }) => complaints),
            [],
        );
    }
}

/** A dashboard in a tab. */
export class Tab {
    readonly page: Page;
    readonly text: Locator;
    readonly banner: Locator;
    readonly notices: Locator;

    constructor(readonly test: TestPage) {
        this.page = test.page;
        this.text = this.page.locator("textarea.text");
        this.banner = this.page.locator(".read-only");
        this.notices = this.page.getByRole("status");
    }

    button(name: string): Locator {
        return this.page.getByRole("button", { name, exact: true });
    }

    /** The lock was seen. */
    async ready(): Promise<void> {
        await this.page.locator(".lock-status:not([data-state=unknown])").waitFor();
    }

    async editing(): Promise<void> {
        await this.page.locator(".editor[data-mode=editing]").waitFor();
    }

    async readOnly(): Promise<void> {
        await this.page.locator(".editor[data-mode=read-only]").waitFor();
    }

    async edit(): Promise<void> {
        await this.button("Edit").click();
        await this.editing();
    }

    async stop(): Promise<void> {
        await this.button("Stop editing").click();
        // The page says so before the daemon does.
        await this.page.locator(".lock-status[data-state=unlocked]").waitFor();
    }

    async type(text: string): Promise<void> {
        await this.text.fill(text);
    }

    async save(): Promise<void> {
        await this.button("Save").click();
        await this.page.getByText("Nothing to save.").waitFor();
    }

    /** Begins a propagation that takes long enough to be looked at. */
    async propagate(stepMs = 1_500): Promise<void> {
        await this.page.route("**/propagation", (route) => {
            if (route.request().method() !== "POST") return route.continue();
            const sent = route.request().postDataJSON() as object;
            return route.continue({ postData: JSON.stringify({ ...sent, step_ms: stepMs, steps: 5 }) });
        });
        await this.button("Propagate").click();
        await this.page.getByText(/Propagating… \d+ %/).waitFor();
    }

    /** What has the focus: its class, or its text. */
    focused(): Promise<string> {
        return this.page.evaluate(() => document.activeElement?.className || document.activeElement?.textContent || "");
    }

    /** Nothing in it runs any more, until the answer wakes it as a browser wakes a frozen page. */
    async freeze(): Promise<() => Promise<void>> {
        const debugging = await this.page.context().newCDPSession(this.page);
        const isPaused = new Promise((resolve) => debugging.once("Debugger.paused", resolve));
        await debugging.send("Debugger.enable");
        await debugging.send("Debugger.pause");
        await isPaused;
        return async () => {
            await debugging.send("Debugger.disable");
            await this.page.evaluate(() => document.dispatchEvent(new Event("resume")));
        };
    }

    /** What a page of the daemon's own API says, as this user. */
    read<T>(path: string): Promise<T> {
        return this.page.evaluate(async (at) => (await fetch(at)).json(), path);
    }

    post(path: string, body: unknown): Promise<number> {
        return this.page.evaluate(
            async ([at, sent]) =>
                (
                    await fetch(at as string, {
                        method: "POST",
                        headers: { "Content-Type": "application/json" },
                        body: JSON.stringify(sent),
                    })
                ).status,
            [path, body],
        );
    }

    lock(project: string): Promise<Lock> {
        return this.read<Lock>(`/v1/lock?name=${encodeURIComponent(`project/${project}/edit`)}`);
    }

    async events(project: string): Promise<AuditEvent[]> {
        const name = encodeURIComponent(`project/${project}/edit`);
        return (await this.read<{ events: AuditEvent[] }>(`/v1/history?name=${name}&limit=200`)).events;
    }
}
