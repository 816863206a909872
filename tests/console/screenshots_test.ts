// Pictures of every page and state, in the build folder, to be looked at; and what the accessibility rules say of them.
import { after, before, test } from "node:test";
import { mkdirSync } from "node:fs";
import type { Browser } from "playwright-core";
import { openBrowser, TestPage, type PageOptions } from "./browser";
import { Daemon, type Granted } from "./daemon";

const daemon = new Daemon();
let browser: Browser;

const runners = ["web-1:deploy:4410:91", "web-3:ci:812:55", "build-7:runner:31337:4"] as const;

/** Who holds what since how many minutes, and for how long still. */
const held = [
    {
        at: 34,
        name: "backup/orders-db",
        holder: "db-2:backup:2077:12",
        does: "pg_basebackup",
        why: "nightly",
        left: "1h",
    },
    { at: 21, name: "nightly/report", holder: "cron-report", does: "report", left: "90s" },
    { at: 13, name: "edit/pricing-page", holder: "browser 9f2c", user: "lena", does: "edit", left: "30m" },
    {
        at: 9,
        name: "migrate/prod",
        holder: runners[1],
        user: "anna.keller",
        does: "migrate up",
        why: "release 42: add orders.currency",
        left: "10m",
    },
    { at: 4, name: "terraform/network", holder: "ops-1:jo:4102:8", does: "plan", why: "peering", left: "2m" },
    { at: 2, name: "deploy/api", holder: runners[2], user: "mara", does: "deploy", why: "v2.14.0", left: "60s" },
];

/** A night of work, so that there is something to see. */
async function tellStory(): Promise<void> {
    const at = (minutes: number, ...words: string[]): Promise<string> => daemon.commandAt(`-${minutes}m`, ...words);
    const acquireAt = async (minutes: number, name: string, ...flags: string[]): Promise<Granted> =>
        JSON.parse(await at(minutes, "acquire", name, "--json", ...flags)) as Granted;
    const migrate = "migrate/prod";
    let start = 232;
    for (const [i, minutes] of [4, 6, 3, 5, 12, 4, 7].entries()) {
        const flags = ["--holder", runners[i % 3] ?? "", "--operation", "migrate up", "-m", `release ${35 + i}`];
        const { lease } = await acquireAt(start, migrate, ...flags, "--ttl", "20m");
        if (i === 4) {
            const why = ["--yes", "--reason", "the runner is gone", "--holder", "ops-1:mara:77:3"];
            await at(start - minutes, "unlock", migrate, ...why);
        } else await at(start - minutes, "release", migrate, "--lease", lease);
        start -= 26;
    }
    // Its holder dies, and the next one takes over.
    await acquireAt(44, migrate, "--holder", runners[0], "--operation", "migrate up", "--ttl", "5m");
    const leases: string[] = [];
    for (const { at: minutes, name, holder, user, does, why } of held) {
        const flags = ["--holder", holder, "--operation", does, "--ttl", "1h"];
        if (user) flags.push("--user", user);
        if (why) flags.push("-m", why);
        leases.push((await acquireAt(minutes, name, ...flags)).lease);
    }
    // What was written in the past is moved with the clock; a renewal now says how long it lasts.
    for (const [i, { name, left }] of held.entries())
        await daemon.command("renew", name, "--lease", leases[i] ?? "", "--ttl", left);
    await daemon.command("acquire", "deploy/web", "--holder", runners[2], "--operation", "deploy", "--ttl", "1s");
    const ask = (name: string, holder: string, user: string, reason: string): Promise<string> =>
        daemon.command(
            ...["override", "request", name, "--holder", holder, "--user", user],
            ...["--reason", reason, "--ttl", "10m", "--wait", "0"],
        );
    await ask(migrate, "web-9:tom:3021:4", "tom.berg", "the checkout fix waits for this");
    await ask("edit/pricing-page", "browser 11aa", "paul", "only a typo in a title");
}

before(async () => {
    mkdirSync(process.env["HOLDFAST_SCREENSHOTS"] ?? "", { recursive: true });
    [browser] = await Promise.all([openBrowser(), tellStory().then(() => daemon.start())]);
});

after(async () => {
    await browser?.close();
    await daemon.remove();
});

interface Shot {
    name: string;
    hash: string;
    options?: PageOptions;
    /** What has to be there before the picture is taken. */
    has: string;
    act?: (view: TestPage) => Promise<void>;
}

const migrate = "#/lock/migrate%2Fprod";

const shots: Shot[] = [
    { name: "locks", hash: "", has: "tbody tr" },
    { name: "locks-dark", hash: "", has: "tbody tr", options: { dark: true } },
    { name: "locks-phone", hash: "", has: "tbody tr", options: { phone: true } },
    { name: "lock", hash: migrate, has: ".chain-intact" },
    { name: "lock-dark", hash: migrate, has: ".chain-intact", options: { dark: true } },
    { name: "lock-phone", hash: migrate, has: ".chain-intact", options: { phone: true } },
    { name: "requests", hash: "#/requests", has: "article" },
    { name: "requests-phone", hash: "#/requests", has: "article", options: { phone: true, dark: true } },
    {
        name: "store",
        hash: "#/store",
        has: ".grade",
        act: async ({ page }) => {
            await page.getByRole("button", { name: "Examine" }).click();
            await page.locator(".checks").waitFor();
        },
    },
    { name: "store-dark", hash: "#/store", has: ".grade", options: { dark: true } },
    {
        name: "break-several",
        hash: "",
        has: "tbody tr",
        act: async ({ page }) => {
            for (const name of ["deploy/web", "nightly/report"]) await page.getByLabel(`Select ${name}`).check();
            await page.getByRole("button", { name: "Break…" }).click();
            await page.getByRole("dialog").waitFor();
        },
    },
    {
        name: "approve-dark",
        hash: "#/requests",
        has: "article",
        options: { dark: true },
        act: async ({ page }) => page.getByRole("button", { name: "Approve…" }).first().click(),
    },
    { name: "keys", hash: "", has: "tbody tr", act: async ({ page }) => page.keyboard.press("?") },
    { name: "nothing-fits", hash: "#/?search=nothing", has: ".empty" },
    { name: "never-used", hash: "#/lock/never%2Fused", has: ".chain-intact" },
];

for (const { name, hash, options = {}, has, act } of shots)
    test(`the page ${name} breaks no serious rule of accessibility`, async () => {
        const view = await TestPage.open(browser, `${daemon.url}/${hash}`, options);
        await view.page.locator(".link[data-state=live]").waitFor();
        await view.page.locator(has).first().waitFor();
        await act?.(view);
        await view.screenshot(name);
        await view.checkAccessibility(name);
        await view.close();
    });

test("what is being read, and a daemon that does not answer, have a page, too", async () => {
    const view = await TestPage.open(browser, "about:blank");
    const { page } = view;
    await page.route("**/v1/session", () => {});
    await page.goto(daemon.url);
    await page.getByLabel("Loading").waitFor();
    await view.screenshot("loading");
    await view.checkAccessibility("loading");
    await page.unroute("**/v1/session");
    await page.route("**/v1/session", (route) => route.abort());
    await page.reload();
    await page.getByText("The daemon cannot be reached").waitFor();
    await view.screenshot("unreachable");
    await view.checkAccessibility("unreachable");
    await page.unroute("**/v1/session");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator("tbody tr").first().waitFor();
    await daemon.stop("SIGKILL");
    await page.getByText(/What you see is how it was at/).waitFor();
    await view.screenshot("offline");
    await view.checkAccessibility("offline");
    await view.close();
});
