// Users and machines at their worst: hostile texts, a browser without room, somebody else in the same browser, and
// answers in the middle that nobody wants.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPage } from "../console/browser";
import { inCockpit, type Person, type Tab } from "./cockpit";

const { cockpit, person } = inCockpit();

const stored = (tab: Tab): Promise<string> => tab.page.evaluate(() => JSON.stringify({ ...localStorage }));
const signIn = (tab: Tab, user: string): Promise<void> => tab.button(user).click();

test("whoever signs out leaves nothing in the browser, and finds the drafts again", async () => {
    const ana = await person("ana");
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    await one.type("between ana and her browser");
    const other = await ana.open("gemini", "roadmap");
    await other.edit();
    await other.type("also hers");
    // A tab that died leaves its lease behind.
    await ana.kill(other);
    const third = await ana.open("gemini", "techstack");
    await one.button("Sign out").click();
    for (const tab of [one, third]) await tab.page.getByRole("heading", { name: "Who are you?" }).waitFor();
    assert.doesNotMatch(await stored(one), /between ana|also hers|holdfast:lease/);
    await signIn(one, "ben");
    await one.page.getByRole("heading", { name: "Projects" }).waitFor();
    await one.page.goto(`${cockpit.url}/p/gemini/roadmap`);
    await one.ready();
    await one.page.getByText("Project unlocked").waitFor();
    await one.edit();
    assert.equal(await one.page.getByText(/between ana|also hers/).count(), 0);
    await one.stop();
    await one.button("Sign out").click();
    await signIn(one, "ana");
    await one.page.getByRole("heading", { name: "Projects" }).waitFor();
    await one.page.goto(`${cockpit.url}/p/apollo/architecture`);
    await one.page.locator(".draft").getByText("between ana and her browser").waitFor();
});

test("a page of somebody who was signed out elsewhere does nothing in the name of the next one", async () => {
    const ana = await person("ana");
    const one = await ana.open("apollo", "roadmap");
    await one.edit();
    await one.type("not for ben");
    const now = await one.page.evaluate(async () => {
        const headers = { "Content-Type": "application/json" };
        await fetch("/api/session", { method: "POST", headers, body: JSON.stringify({ user: "ben" }) });
        return ((await (await fetch("/api/session")).json()) as { user: string }).user;
    });
    assert.equal(now, "ben");
    await one.page.getByRole("heading", { name: "Projects" }).waitFor();
    assert.equal((await one.lock("apollo")).user, "ana", "its lock is not given to anybody");
    await one.page.goto(`${cockpit.url}/p/apollo/roadmap`);
    await one.ready();
    await one.banner.getByText("Roadmap (ana) is currently being edited").waitFor();
    const drafts = await one.read<{ drafts: unknown[] }>("/api/projects/apollo/dashboards/roadmap/drafts");
    assert.deepEqual(drafts.drafts, []);
    assert.equal(await one.page.getByText("not for ben").count(), 0);
});

test("whoever is signed out while typing can sign in again elsewhere, and save", async () => {
    const ana = await person("ana");
    const one = await ana.open("gemini", "techstack");
    await one.edit();
    await one.type("typed before and after");
    await ana.context.clearCookies();
    await one.notices.getByText("You are signed out. Sign in again in another tab").waitFor();
    await one.button("Save").click();
    await one.page.getByText(/Not saved: sign in first/).waitFor();
    assert.equal(await one.text.inputValue(), "typed before and after");
    const again = await TestPage.in(ana.context);
    await again.page.goto(cockpit.url);
    await again.page.getByRole("button", { name: "ana", exact: true }).click();
    await again.page.getByRole("heading", { name: "Projects" }).waitFor();
    await one.editing();
    await one.save();
});

/** Storage that throws, as it does where a browser blocks what sites keep. */
async function blockStorage({ context }: Person): Promise<void> {
    await context.addInitScript(() => {
        for (const name of ["localStorage", "sessionStorage"])
            Object.defineProperty(window, name, {
                get: () => {
                    throw new DOMException("blocked", "SecurityError");
                },
            });
    });
}

async function fillStorage({ context }: Person): Promise<void> {
    await context.addInitScript(() => {
        for (let size = 4_000_000; size > 0; size = Math.floor(size / 2))
            try {
                for (let i = 0; ; ++i) localStorage.setItem(`${size} ${i}`, "x".repeat(size));
            } catch {
                // Full for this size.
            }
    });
}

for (const [what, prepare] of [
    ["blocked", blockStorage],
    ["full", fillStorage],
] as const)
    test(`where storage is ${what}, that is said once, and the server keeps the draft`, async () => {
        const ana = await person("ana");
        await prepare(ana);
        const one = await ana.open("apollo", "techstack");
        await one.edit();
        const isKept = one.page.waitForResponse((response) => response.url().endsWith("/draft") && response.ok());
        await one.type(`typed where storage is ${what}`);
        await one.notices.getByText("This browser has no room for your draft").waitFor();
        await isKept;
        await ana.kill(one);
        const two = await ana.open("apollo", "techstack");
        await two.page.locator(".draft").getByText(`typed where storage is ${what}`).waitFor();
    });

const isTooWide = ({ page }: Tab): Promise<boolean> =>
    page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);

test("long and turning texts of others stay in their places, also in what is said", async () => {
    const evil = `\u202e<b>${"W".repeat(240)}`;
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    const two = await ben.open("apollo", "roadmap");
    await two.button("Request override").click();
    const reason = two.page.getByLabel("Reason");
    // Of three bytes each: as long as the field lets it be.
    await reason.fill("語".repeat(5_000));
    await reason.press("End");
    await two.button("Request").click();
    await two.notices.getByText("Requested. You will be told.").waitFor();
    await one.page.locator(".question").getByText("語語語").waitFor();
    await one.button("Deny").click();
    const dialog = one.page.getByRole("dialog", { name: "Deny the request?" });
    await dialog.getByLabel("Reason").fill(evil);
    await dialog.getByRole("button", { name: "Deny" }).click();
    await two.notices.getByText("Your request was denied:").waitFor();
    assert.match(await two.notices.innerText(), /\\u202e<b>WWW/);
    assert.doesNotMatch(await two.notices.innerText(), /\u202e/);
    await one.stop();
    const holder = `${evil.slice(0, 200)}#${"x".repeat(40)}`;
    assert.equal(await two.post("/v1/acquire", { name: "project/apollo/edit", holder, operation: evil }), 200);
    for (const tab of [one, two]) {
        await tab.page.setViewportSize({ width: 390, height: 844 });
        await tab.banner.getByText("WWW").waitFor();
        assert.equal(await isTooWide(tab), false);
        assert.doesNotMatch(await tab.page.locator("main").innerText(), /\u202e/);
    }
});

test("an address that cannot be read leads to the list of projects", async () => {
    const ana = await person("ana");
    const view = await TestPage.in(ana.context);
    for (const path of ["/p/%zz/%", "/p/apollo/%E0%A4%A", "/p/nowhere/roadmap"]) {
        await view.page.goto(`${cockpit.url}${path}`);
        await view.page.getByRole("heading", { name: "Projects" }).or(view.page.getByText("no such")).first().waitFor();
    }
    assert.deepEqual(view.complaints, []);
    await view.page.close();
});

test("a save that nobody wants to take says why, and can be tried again", async () => {
    const ana = await person("ana");
    const one = await ana.open("gemini", "architecture");
    await one.edit();
    await one.type("worth it");
    const unavailable = JSON.stringify({ error: { code: "E_STORE_UNAVAILABLE", message: "the store is away" } });
    for (const [status, body, said] of [
        [413, "<h1>Too large</h1>", /Not saved: The daemon answered with status 413/],
        [503, unavailable, /Not saved: the store is away.*: try again/],
        [504, "<h1>Timeout</h1>", /Nobody knows whether it was saved/],
    ] as const) {
        await one.page.route("**/dashboards/architecture", (route) =>
            route.request().method() === "PUT" ? route.fulfill({ status, body }) : route.continue(),
        );
        await one.button("Save").click();
        await one.page.getByText(said).waitFor();
        assert.equal(await one.text.inputValue(), "worth it");
        await one.editing();
        await one.page.unroute("**/dashboards/architecture");
    }
    // Too long for the server itself, and half a character.
    await one.page.evaluate(() => {
        const area = document.querySelector("textarea.text") as HTMLTextAreaElement;
        area.value = `\ud800${"x".repeat(2_000_000)}`;
        area.dispatchEvent(new Event("input", { bubbles: true }));
    });
    await one.button("Save").click();
    await one.page.getByText(/Not saved: the request is too long/).waitFor();
    await one.type("\ud83d and a half");
    await one.save();
});
