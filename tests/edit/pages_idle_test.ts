// Editors that do nothing, with times that are shorter than those of the policies.
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { inCockpit } from "./cockpit";

const staleAfterMs = 3_000;
const policies = `
[[policy]]
match = "project/apollo/edit"
ttl = "15s"

[[policy]]
match = "project/*/edit"
ttl = "10m"
stale_after = "${staleAfterMs}ms"
unless_held = ["project/*/propagation"]
`;

const { person } = inCockpit((folder) => {
    const file = join(folder, "short.toml");
    writeFileSync(file, policies);
    return [file, "--stale-after-ms", String(staleAfterMs), "--renew-every-ms", "500"];
});

test("an idle editor loses the lock, keeps the draft and goes on with it", async () => {
    const ana = await person("ana");
    const tab = await ana.open("apollo", "architecture");
    await tab.edit();
    await tab.type("an unfinished");
    await tab.text.focus();
    await tab.page.getByRole("heading", { name: "Session expired" }).waitFor();
    await tab.notices.getByText("Your edit lock expired due to inactivity.").waitFor();
    assert.equal(await tab.focused(), "text", "the focus stays");
    await tab.readOnly();
    await tab.page.locator(".draft").getByText("an unfinished").waitFor();
    await tab.button("Resume editing").click();
    await tab.editing();
    // Nothing was saved since, so the text is there as it was.
    assert.equal(await tab.text.inputValue(), "an unfinished");
});

test("who types keeps the lock", async () => {
    const ana = await person("ana");
    const tab = await ana.open("gemini", "architecture");
    await tab.edit();
    const before = (await tab.lock("gemini")).renew_seq ?? 0;
    while (((await tab.lock("gemini")).renew_seq ?? 0) < before + 2) await tab.text.pressSequentially("a");
    await tab.editing();
    await tab.stop();
});

test("an editor that is idle for long can be replaced in one step, and its draft is offered to both", async () => {
    const [ana, ben] = [await person("ana"), await person("ben")];
    const one = await ana.open("gemini", "roadmap");
    await one.edit();
    await one.type("gone for lunch");
    const two = await ben.open("gemini", "roadmap");
    await two.button("Take over, it is idle").click();
    await two.editing();
    await one.readOnly();
    await one.notices.getByText("Your edit lock was taken away").waitFor();
    for (const tab of [one, two]) await tab.page.locator(".draft").getByText("gone for lunch").first().waitFor();
    const last = (await two.events("gemini")).at(-1);
    assert.equal(last?.event, "stolen");
});
