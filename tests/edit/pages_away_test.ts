// Tabs that are duplicated, frozen, killed or many, and a daemon that is away.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inCockpit, type Tab } from "./cockpit";

const { cockpit, person } = inCockpit();

const unlock = async (tab: Tab, project: string): Promise<void> => {
    const { lock_id } = await tab.lock(project);
    assert.equal(await tab.post("/v1/unlock", { name: `project/${project}/edit`, lock_id, reason: "test" }), 200);
};

test("a duplicated tab does not edit, and goes on with the other's work in one step, by keyboard alone", async () => {
    const ana = await person("ana");
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    await one.type("in the first tab");
    const two = await ana.duplicate(one);
    await two.readOnly();
    await two.banner.getByText("is being edited in another tab of this browser").waitFor();
    await two.button("Edit here instead").focus();
    await two.page.keyboard.press("Enter");
    await two.editing();
    await two.notices.getByText("You are editing Architecture.").waitFor();
    assert.equal(await two.focused(), "text", "the focus is where one goes on");
    await one.readOnly();
    await one.notices.getByText("You handed the edit lock over.").waitFor();
    await two.page.locator(".draft").getByText("in the first tab").waitFor();
    assert.equal((await two.events("apollo")).at(-1)?.event, "transferred");
});

test("a tab that was killed leaves its draft, and its lock to the other tabs of the browser", async () => {
    const ana = await person("ana");
    const one = await ana.open("gemini", "architecture");
    await one.edit();
    await one.type("last words");
    await ana.kill(one);
    const two = await ana.open("gemini", "architecture");
    await two.page.locator(".draft").getByText("last words").waitFor();
    await two.button("Edit here instead").click();
    await two.editing();
    await two.button("Use this draft").click();
    await two.save();
});

test("a page that was loaded again offers its draft beside a newer version", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("gemini", "techstack");
    await one.edit();
    await one.type("mine");
    await one.page.goto("about:blank");
    const two = await ben.open("gemini", "techstack");
    await two.page.getByText("Project unlocked").waitFor();
    await two.edit();
    await two.type("newer");
    await two.save();
    await two.stop();
    await one.page.goto(`${cockpit.url}/p/gemini/techstack`);
    const draft = one.page.locator(".draft").filter({ hasText: "mine" }).first();
    await draft.getByText(/It began from version \d+; version \d+ was saved since/).waitFor();
    await draft.getByText("newer").waitFor();
    assert.equal(await one.text.inputValue(), "newer");
});

test("a page that was frozen does not believe that it holds", async () => {
    const [ana, olga] = [await person("ana"), await person("olga")];
    const one = await ana.open("apollo", "roadmap");
    await one.edit();
    await one.type("asleep");
    const wake = await one.freeze();
    const admin = await olga.open("apollo", "roadmap");
    await unlock(admin, "apollo");
    await admin.edit();
    // Nobody has told it yet.
    let answer = (): void => {};
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    await ana.context.route("**/v1/lock?**", async (route) => {
        await isAnswered;
        await route.continue();
    });
    await wake();
    await one.banner.getByText("Asking whether the lock is still yours").waitFor();
    answer();
    await one.readOnly();
    await one.banner.getByText("Roadmap (olga) is currently being edited").waitFor();
    await one.page.locator(".draft").getByText("asleep").waitFor();
});

test("without the network one types on with a warning, and saves when it is back", async () => {
    const ana = await person("ana");
    const tab = await ana.open("gemini", "roadmap");
    await tab.edit();
    await ana.context.route("**/v1/**", (route) => route.abort("internetdisconnected"));
    await ana.context.setOffline(true);
    await tab.page.getByText("The lock service cannot be reached. You can go on typing").waitFor();
    await tab.type("typed offline");
    await tab.page.getByText("The lock service cannot be reached.", { exact: true }).waitFor();
    assert.equal(await tab.button("Save").isDisabled(), true);
    await ana.context.setOffline(false);
    await ana.context.unroute("**/v1/**");
    await tab.page.getByText("The lock service cannot be reached. You can go on typing").waitFor({ state: "hidden" });
    await tab.save();
});

test("with the stricter policy one reads meanwhile", async () => {
    const ana = await person("ana");
    const tab = await ana.open("gemini", "architecture", "?unreachable=read_only");
    await tab.edit();
    await tab.type("kept");
    await ana.context.route("**/v1/**", (route) => route.abort("internetdisconnected"));
    await ana.context.setOffline(true);
    await tab.readOnly();
    await tab.banner.getByText("The lock service cannot be reached").waitFor();
    assert.equal(await tab.text.inputValue(), "kept");
    await ana.context.setOffline(false);
    await ana.context.unroute("**/v1/**");
    await tab.editing();
    await tab.save();
});

test("a daemon that is started again under an open page finds it editing", async () => {
    const ana = await person("ana");
    const one = await ana.open("apollo", "techstack");
    await one.edit();
    await one.type("before and after");
    await cockpit.stopDaemon();
    await one.page.getByText("The lock service cannot be reached. You can go on typing").waitFor();
    // Opened meanwhile: typed without a lock, which is taken when that is possible.
    const other = await ana.open("gemini", "techstack");
    await other.button("Edit").click();
    await other.page.locator(".editor[data-mode=unguarded]").waitFor();
    await other.type("without a lock");
    await other.page.getByText("The lock service cannot be reached: what you type is kept as a draft.").waitFor();
    await cockpit.startDaemon();
    await one.page.getByText("The lock service cannot be reached. You can go on typing").waitFor({ state: "hidden" });
    await one.editing();
    await one.save();
    await other.editing();
    assert.equal(await other.text.inputValue(), "without a lock");
    await other.save();
});

test("of ten tabs one edits, the others say so, and they have one stream of events", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const streams = new Set<string>();
    let count = 0;
    ana.context.on("request", (request) => {
        if (request.url().includes("/v1/events")) streams.add(`${request.frame().page().url()} ${++count}`);
    });
    const tabs: Tab[] = [];
    for (let i = 0; i < 10; ++i)
        tabs.push(await ana.open("apollo", ["architecture", "techstack", "roadmap"][i % 3] ?? "roadmap"));
    assert.equal(streams.size, 1);
    const [first, ...others] = tabs as [Tab, ...Tab[]];
    await first.edit();
    for (const tab of others) await tab.banner.getByText("Architecture (ana) is being edited in another tab").waitFor();
    const stranger = await ben.open("apollo", "roadmap");
    await stranger.banner.getByText("Architecture (ana) is currently being edited").waitFor();
    await first.stop();
    for (const tab of tabs) await tab.page.getByText("Project unlocked").waitFor();
});

test("texts made of markup, escapes and other directions do no harm", async () => {
    const evil = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202e\u2066";
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    await one.type(evil);
    await one.save();
    await one.type(`${evil} more`);
    const two = await ben.open("apollo", "architecture");
    await two.button("Request override").click();
    await two.page.getByLabel("Reason").fill(evil);
    await two.button("Request").click();
    await one.page.locator(".question").getByText("<img src=x").waitFor();
    await one.button("Approve").click();
    await two.editing();
    await two.page.locator(".draft").getByText("<img src=x").first().waitFor();
    const holder = `${evil}#x`;
    await two.stop();
    assert.equal(await two.post("/v1/acquire", { name: "project/apollo/edit", holder, operation: evil }), 200);
    await two.banner.getByText("<img src=x").waitFor();
    for (const { page } of [one, two]) {
        assert.equal(await page.locator("main img, main script, main .untrusted *:not(.escape)").count(), 0);
        assert.doesNotMatch(await page.locator("main").innerText(), /[\u2066\u202e]/);
    }
});
