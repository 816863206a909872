import assert from "node:assert/strict";
import { test } from "node:test";
import { Drafts } from "../../clients/js/src/drafts";
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

test("a storage that does not outlive the page keeps drafts for its time, and says so", () => {
    const drafts = new Drafts(Object.assign(new FakeStorage(), { isVolatile: true }), "tab-1", "ana");
    assert.equal(drafts.keep("document", "typed", "1"), false);
    assert.deepEqual(texts(drafts, "document"), ["typed"]);
});

test("a clock that is wrong by years removes no draft; one that is old makes room for a new one", (context) => {
    const storage = new FakeStorage(Infinity, 2);
    new Drafts(storage, "tab-1", "ana").keep("document", "old", "1");
    storage.setItem("holdfast:draft:ana:document:tab-9", "{");
    const now = Date.now();
    context.mock.method(Date, "now", () => now + 31 * 24 * 3_600_000);
    const later = new Drafts(storage, "tab-2", "ana");
    assert.deepEqual(texts(later, "document"), ["old"], "and a damaged one is passed over");
    assert.equal(later.keep("document", "new", "1"), true);
    assert.deepEqual(texts(later, "document"), ["new"]);
});

test("whoever signs out takes along all drafts of their own, and nobody else's", () => {
    const storage = new FakeStorage();
    const ana = new Drafts(storage, "tab-1", "ana");
    ana.keep("apollo/roadmap", "one", "1");
    new Drafts(storage, "tab-2", "ana").keep("gemini/roadmap", "two", "1");
    new Drafts(storage, "tab-1", "anastasia").keep("apollo/roadmap", "not ana's", "1");
    assert.deepEqual(
        ana
            .all()
            .map(({ text }) => text)
            .sort(),
        ["one", "two"],
    );
});

test("the lease of a user is not offered to the next one in the same browser", () => {
    const storage = new FakeStorage();
    new OwnLeases(storage, "ana").put("edit", { lockId: "a", lease: "a.key", tab: "tab-1" });
    assert.equal(new OwnLeases(storage, "ben").get("edit"), null);
    assert.equal(new OwnLeases(storage, "ana").get("edit")?.lease, "a.key");
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
