// What docs/reference/edit-locks.md lists, in a real browser against the sample application and its daemon.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inCockpit, type Tab } from "./cockpit";

const { person } = inCockpit();

test("one dashboard is edited at a time: the flow of the document, step by step", async () => {
    const ana = await person("ana");
    const one = await ana.open("apollo", "architecture");
    await one.page.getByText("Project unlocked").waitFor();
    await one.edit();
    await one.page.getByText("Locked by Architecture (ana)").waitFor();
    const two = await ana.open("apollo", "techstack");
    await two.button("Edit").click();
    const dialog = two.page.getByRole("dialog", { name: "Cannot edit" });
    await dialog.getByText("Dashboard Architecture (ana) is currently being edited").waitFor();
    await dialog.getByRole("button", { name: "Edit here instead" }).waitFor();
    await dialog.getByRole("button", { name: "Try again later" }).click();
    await two.readOnly();
    await two.banner.getByText("Read-only mode: Architecture (ana) is being edited in another tab").waitFor();
    await one.stop();
    await two.page.getByText("Project unlocked").waitFor();
    await two.edit();
    await two.page.getByText("Locked by Tech stack (ana)").waitFor();
    await two.button("Release lock").click();
    await one.page.getByText("Project unlocked").waitFor();
});

test("the dialog leads to the dashboard that is edited", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    const two = await ben.open("apollo", "roadmap");
    await two.button("Edit").click();
    await two.button("View dashboard").click();
    await two.page.getByRole("heading", { name: "Architecture" }).waitFor();
    await two.banner.getByText("Architecture (ana) is currently being edited").waitFor();
});

test("two tabs click Edit at the same time, and exactly one edits", async () => {
    const rounds = Number(process.env["HOLDFAST_EDIT_ROUNDS"] ?? 5);
    const [ana, ben] = [await person("ana"), await person("ben")];
    const tabs = [await ana.open("gemini", "architecture"), await ben.open("gemini", "techstack")];
    for (let round = 0; round < rounds; ++round) {
        for (const tab of tabs) await tab.page.getByText("Project unlocked").waitFor();
        await Promise.all(tabs.map((tab) => tab.button("Edit").click()));
        const outcomes = await Promise.all(
            tabs.map(async (tab) => {
                const refused = tab.page.getByRole("dialog", { name: "Cannot edit" });
                await tab.page.locator(".editor[data-mode=editing], dialog").first().waitFor();
                if (!(await refused.isVisible())) return tab;
                await tab.button("Try again later").click();
                await tab.readOnly();
                return null;
            }),
        );
        const editing = outcomes.filter((tab): tab is Tab => tab !== null);
        assert.equal(editing.length, 1, `round ${round}`);
        await editing[0]?.stop();
    }
});

test("what is saved is there for everybody, and a switch keeps the project locked", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("apollo", "roadmap");
    await one.edit();
    await one.type("# Roadmap\n\nMars.\n");
    await one.save();
    const before = (await one.lock("apollo")).token;
    await one.page.getByRole("navigation").getByRole("link", { name: "Tech stack" }).click();
    await one.page.getByRole("heading", { name: "Tech stack" }).waitFor();
    await one.editing();
    await one.page.getByText("Locked by Tech stack (ana)").waitFor();
    assert.ok((await one.lock("apollo")).token > before);
    const last = (await one.events("apollo")).at(-1);
    assert.equal(last?.event, "transferred");
    const two = await ben.open("apollo", "roadmap");
    assert.equal(await two.text.inputValue(), "# Roadmap\n\nMars.\n");
    await two.banner.getByText("Tech stack (ana) is currently being edited").waitFor();
});

test("a page that is closed gives the lock back", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("gemini", "roadmap");
    await one.edit();
    const two = await ben.open("gemini", "architecture");
    await two.banner.waitFor();
    await one.page.close({ runBeforeUnload: true });
    await two.page.getByText("Project unlocked").waitFor();
    assert.equal((await two.events("gemini")).at(-1)?.event, "released");
});

test("a request is approved: the asker edits, and the draft of the other is offered to both", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    await one.type("half a thought");
    const two = await ben.open("apollo", "architecture");
    await two.banner.getByRole("button", { name: "Request edit access" }).click();
    await two.page.getByLabel("Reason").fill("a typo");
    await two.button("Request").click();
    await two.button("Requested, waiting for an answer").waitFor();
    await one.notices.getByText("Somebody asks for edit access.").waitFor();
    await one.page.getByText("ben asks for edit access in Architecture: a typo").waitFor();
    assert.equal(await one.focused(), "text", "the focus stays");
    await one.button("Approve").click();
    await two.editing();
    await one.readOnly();
    for (const tab of [one, two]) {
        const draft = tab.page.locator(".draft").filter({ hasText: "half a thought" });
        await draft.first().waitFor();
    }
    await two.page.locator(".draft").getByText("ana").waitFor();
    await two.button("Use this draft").click();
    assert.equal(await two.text.inputValue(), "half a thought");
    await two.save();
});

test("a request is denied with a reason, by the holder or by who may approve", async () => {
    const [ana, ben, olga] = [await person("ana"), await person("ben"), await person("olga")];
    const one = await ana.open("apollo", "architecture");
    await one.edit();
    const two = await ben.open("apollo", "techstack");
    const three = await olga.open("apollo", "roadmap");
    for (const [tab, reason] of [
        [one, "in ten minutes"],
        [three, "not today"],
    ] as const) {
        await two.button("Request override").click();
        await two.button("Request").click();
        await tab.page.getByText("ben asks for edit access in Tech stack").waitFor();
        await tab.button("Deny").click();
        const dialog = tab.page.getByRole("dialog", { name: "Deny the request?" });
        await dialog.getByLabel("Reason").fill(reason);
        await dialog.getByRole("button", { name: "Deny" }).click();
        await two.notices.getByText(`Your request was denied: ${reason}`).waitFor();
        await two.button("Request override").waitFor();
    }
    await one.editing();
});

test("a propagation is shown as it goes on, and blocks editing and saving", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("gemini", "architecture");
    await one.edit();
    await one.type("not yet");
    const two = await ben.open("gemini", "roadmap");
    await two.propagate();
    await two.page.getByRole("progressbar", { name: "Propagation" }).waitFor();
    await one.readOnly();
    await one.banner.getByText("Changes are propagating across dashboards").waitFor();
    await one.page.getByText("Changes are propagating: wait until that is done.").waitFor();
    assert.equal(await one.button("Save").isDisabled(), true);
    await two.notices.getByText("All dashboards are up to date.").waitFor();
    await one.editing();
    // The propagation has changed this dashboard, too.
    await one.page.locator(".draft").getByText("not yet").waitFor();
    await one.button("Use this draft").click();
    await one.save();
});

test("a propagation from another source is said to be one, and can be tried again", async () => {
    const ana = await person("ana");
    const one = await ana.open("gemini", "architecture");
    const name = "project/gemini/propagation";
    const lease = `${crypto.randomUUID()}.${"7".repeat(32)}`;
    assert.equal(await one.post("/v1/acquire", { name, holder: "nightly", lease }), 200);
    await one.page.getByText("Propagation in progress from another source").waitFor();
    await one.button("Retry").click();
    await one.page.getByText("Propagation in progress from another source").waitFor();
    await one.button("Edit").click();
    await one.page.getByRole("dialog", { name: "Cannot edit" }).getByText("Changes are propagating").waitFor();
    await one.button("Try again later").click();
    assert.equal(await one.post("/v1/release", { name, lease }), 200);
    await one.page.getByText("Ready to propagate").waitFor();
    await one.edit();
});

test("whoever only looks is told so", async () => {
    const vera = await person("vera");
    const tab = await vera.open("apollo", "roadmap");
    await tab.banner.getByText("Read-only mode: You don't have edit permissions").waitFor();
    assert.equal(await tab.button("Edit").isVisible(), false);
    await tab.button("Request edit access").click();
    await tab.page.getByRole("dialog", { name: "Cannot edit" }).getByText("Your account only looks").waitFor();
    await tab.button("Done").click();
});

test("a save under an old token is refused, and the text is kept", async () => {
    const [ana, ben, olga] = [await person("ana"), await person("ben"), await person("olga")];
    const one = await ana.open("apollo", "techstack");
    await one.edit();
    await one.type("from the past");
    // The request is held up on its way until somebody else has saved.
    let deliver = (): void => {};
    const isLate = new Promise<void>((resolve) => (deliver = resolve));
    const isSent = new Promise<void>((resolve) => {
        void one.page.route("**/dashboards/techstack", async (route) => {
            if (route.request().method() !== "PUT") return route.continue();
            resolve();
            await isLate;
            await route.continue();
        });
    });
    await one.button("Save").click();
    await isSent;
    const admin = await olga.open("apollo", "roadmap");
    const { lock_id } = await admin.lock("apollo");
    assert.equal(await admin.post("/v1/unlock", { name: "project/apollo/edit", lock_id, reason: "test" }), 200);
    const two = await ben.open("apollo", "techstack");
    await two.edit();
    await two.type("the present");
    await two.save();
    deliver();
    await one.page.getByText(/Not saved: .* Your text is kept as a draft/).waitFor();
    await one.readOnly();
    assert.equal((await two.read<{ text: string }>("/api/projects/apollo/dashboards/techstack")).text, "the present");
    const draft = one.page.locator(".draft").filter({ hasText: "from the past" }).first();
    await draft.getByText("the present").waitFor();
    await two.page.locator(".draft").filter({ hasText: "from the past" }).getByText("ana").waitFor();
});

test("when nobody knows whether a save counted, that is said, and it can be tried again", async () => {
    const ana = await person("ana");
    const tab = await ana.open("apollo", "roadmap");
    await tab.edit();
    await tab.type("twice or once");
    await tab.page.route("**/dashboards/roadmap", (route) =>
        route.request().method() === "PUT" ? route.abort("connectionreset") : route.continue(),
    );
    await tab.button("Save").click();
    await tab.page.getByText("Nobody knows whether it was saved").waitFor();
    assert.equal(await tab.text.inputValue(), "twice or once");
    await tab.page.unroute("**/dashboards/roadmap");
    // This time it is saved, and the answer is lost.
    await tab.page.route("**/dashboards/roadmap", async (route) => {
        if (route.request().method() !== "PUT") return route.continue();
        await route.fetch();
        return route.abort("connectionreset");
    });
    await tab.button("Save").click();
    await tab.notices.getByText(/^Saved as version/).waitFor();
});
