import assert from "node:assert/strict";
import { test } from "node:test";
import { Drafts } from "../../clients/js/src/drafts";
import { isRenewalDue } from "../../clients/js/src/edit_session";
import { OwnLeases } from "../../clients/js/src/own_leases";
import { FakeStorage } from "./fake_browser";

const texts = (drafts: Drafts, document: string): string[] => drafts.of(document).map(({ text }) => text);

test("a draft outlives its tab, and the other tabs of its user see it", () => {
    const storage = new FakeStorage();
    const first = new Drafts(storage, "tab-1", "ana");
    assert.equal(first.keep("apollo/roadmap", "one", "7"), true);
    assert.equal(first.keep("apollo/roadmap", "one and more", "7"), true);
    first.keep("apollo/roadmap/2", "of another document", "1");
    const second = new Drafts(storage, "tab-2", "ana");
    second.keep("apollo/roadmap", "two", "8");
    assert.deepEqual(texts(second, "apollo/roadmap").sort(), ["one and more", "two"]);
    assert.deepEqual(
        second
            .of("apollo/roadmap")
            .map(({ base }) => base)
            .sort(),
        ["7", "8"],
    );
    second.remove("apollo/roadmap");
    assert.deepEqual(texts(second, "apollo/roadmap"), ["one and more"]);
    second.remove("apollo/roadmap", "tab-1");
    assert.deepEqual(texts(first, "apollo/roadmap"), []);
    assert.deepEqual(texts(new Drafts(storage, "tab-3", "ben"), "apollo/roadmap/2"), []);
});

test("a draft that cannot be kept is not said to be kept", () => {
    const drafts = new Drafts(new FakeStorage(300), "tab-1", "ana");
    assert.equal(drafts.keep("document", "short", "1"), true);
    assert.equal(drafts.keep("document", "long".repeat(100), "1"), false);
    assert.deepEqual(texts(drafts, "document"), ["short"]);
});

test("drafts that nobody came back for are removed after a month, and damaged ones are passed over", (context) => {
    const storage = new FakeStorage();
    new Drafts(storage, "tab-1", "ana").keep("document", "old", "1");
    storage.setItem("holdfast:draft:ana:document:tab-9", "{");
    assert.deepEqual(texts(new Drafts(storage, "tab-2", "ana"), "document"), ["old"]);
    const now = Date.now();
    context.mock.method(Date, "now", () => now + 31 * 24 * 3_600_000);
    assert.deepEqual(texts(new Drafts(storage, "tab-2", "ana"), "document"), []);
});

test("a lease of this browser is forgotten by the tab whose it is, and by no other", () => {
    const leases = new OwnLeases(new FakeStorage());
    leases.put("edit", { lockId: "a", lease: "a.key", tab: "tab-1" });
    leases.put("edit", { lockId: "b", lease: "b.key", tab: "tab-2" });
    leases.remove("edit", "a");
    assert.equal(leases.get("edit")?.lease, "b.key");
    leases.remove("edit", "b");
    assert.equal(leases.get("edit"), null);
});

test("a lease is renewed while there is input, and at once by the first input after a pause", () => {
    const minute = 60_000;
    // Nobody typed since the last renewal.
    assert.equal(isRenewalDue(20 * minute, 0, 0, 5 * minute), false);
    // Typed, but it is too early.
    assert.equal(isRenewalDue(4 * minute, 0, 3 * minute, 5 * minute), false);
    // Typed a while ago, when the interval was not over.
    assert.equal(isRenewalDue(5 * minute, 0, 1, 5 * minute), true);
    // The interval passed without input; this is the first.
    assert.equal(isRenewalDue(12 * minute, 0, 12 * minute, 5 * minute), true);
});
