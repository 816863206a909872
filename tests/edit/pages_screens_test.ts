// A picture of every screen and state, and what axe says of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { TestPage } from "../console/browser";
import { inCockpit, type Tab } from "./cockpit";

const { cockpit, browser, person } = inCockpit();

async function shot({ test: page }: Tab, name: string): Promise<void> {
    await page.checkAccessibility(name);
    await page.screenshot(`cockpit-${name}`);
}

test("signing in and the list of projects", async () => {
    const page = await TestPage.open(browser(), cockpit.url);
    await page.page.getByRole("heading", { name: "Who are you?" }).waitFor();
    await page.checkAccessibility("sign-in");
    await page.screenshot("cockpit-sign-in");
    await page.page.getByRole("button", { name: "ana", exact: true }).click();
    await page.page.getByRole("heading", { name: "Projects" }).waitFor();
    await page.checkAccessibility("projects");
    await page.screenshot("cockpit-projects");
    await page.close();
});

for (const dark of [false, true])
    test(`every state of a dashboard, ${dark ? "dark" : "light"}`, async () => {
        const suffix = dark ? "-dark" : "";
        const ana = await person("ana", dark);
        const ben = await person("ben", dark);
        const one = await ana.open("apollo", "architecture");
        await shot(one, `unlocked${suffix}`);
        await one.edit();
        await one.type("# Architecture\n\nTwo services, one database, and a queue between them.\n");
        await shot(one, `editing${suffix}`);
        const two = await ben.open("apollo", "techstack");
        await two.banner.waitFor();
        await shot(two, `read-only${suffix}`);
        await two.button("Edit").click();
        await two.page.getByRole("dialog", { name: "Cannot edit" }).waitFor();
        await shot(two, `cannot-edit${suffix}`);
        await two.button("Request override").last().click();
        await two.page.getByLabel("Reason").fill("The release needs this today.");
        await shot(two, `request${suffix}`);
        await two.button("Request").click();
        await one.page.locator(".question").waitFor();
        await shot(one, `asked${suffix}`);
        await one.button("Approve").click();
        await two.editing();
        await one.page.locator(".draft").waitFor();
        await one.page.setViewportSize({ width: 1360, height: 1040 });
        await shot(one, `draft${suffix}`);
    });

test("the same on a telephone", async () => {
    const ana = await person("ana");
    const tab = await ana.open("apollo", "roadmap");
    await tab.page.setViewportSize({ width: 390, height: 844 });
    await tab.edit();
    await shot(tab, "phone");
    const isWider = await tab.page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
    assert.equal(isWider, false);
});

test("a propagation", async () => {
    const ben = await person("ben");
    const tab = await ben.open("apollo", "roadmap");
    await tab.propagate();
    await tab.banner.getByText("Changes are propagating").waitFor();
    await shot(tab, "propagating");
});
