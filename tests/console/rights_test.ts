import assert from "node:assert/strict";
import { test } from "node:test";
import type { Session } from "../../clients/js/src/documents";
import { mayAdminister, roleFor } from "../../web/src/model/rights";

const session: Session = {
    user: "ci",
    role: "admin",
    prefixes: [],
    grants: ["viewer", "holder:deploy", "admin:team/"],
    auth: "cookie",
};

test("the highest role that covers a lock counts", () => {
    assert.equal(roleFor(session, "other"), "viewer");
    assert.equal(roleFor(session, "deploy"), "holder");
    assert.equal(roleFor(session, "deploy/api"), "holder");
    assert.equal(roleFor(session, "deployment"), "viewer");
    assert.equal(roleFor(session, "team/a"), "admin");
    assert.equal(roleFor(session, "team"), "viewer");
    assert.equal(mayAdminister(session, "deploy"), false);
});

test("a daemon that is open to local use lets everybody do everything", () => {
    const open: Session = { user: null, role: "admin", prefixes: [""], grants: ["admin"], auth: "open" };
    assert.equal(mayAdminister(open, "any"), true);
});
