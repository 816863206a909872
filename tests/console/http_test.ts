import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { CallError, http } from "../../web/src/api/http";

const realFetch = globalThis.fetch;
afterEach(() => {
    globalThis.fetch = realFetch;
});

function answering(status: number, body: string): void {
    globalThis.fetch = async () => new Response(body, { status });
}

async function ending(call: Promise<unknown>): Promise<string> {
    try {
        await call;
        return "done";
    } catch (error) {
        assert.ok(error instanceof CallError);
        return error.ending;
    }
}

const document = (code: string): string => JSON.stringify({ error: { code, message: "why" } });

test("a change has three endings, and none becomes another", async () => {
    answering(200, "{}");
    assert.equal(await ending(http.post("/v1/unlock", {})), "done");
    answering(423, document("E_LOCK_CONFLICT"));
    assert.equal(await ending(http.post("/v1/unlock", {})), "refused");
    answering(503, document("E_STORE_UNAVAILABLE"));
    assert.equal(await ending(http.post("/v1/unlock", {})), "unreached");
    answering(504, document("E_OUTCOME_UNKNOWN"));
    assert.equal(await ending(http.post("/v1/unlock", {})), "unknown");
});

test("what a proxy says of a change says nothing of what the daemon did", async () => {
    for (const status of [500, 502, 503, 504]) {
        answering(status, "<html>");
        assert.equal(await ending(http.post("/v1/unlock", {})), "unknown", String(status));
    }
    answering(200, "<html>");
    assert.equal(await ending(http.post("/v1/unlock", {})), "unknown");
});

test("a connection that breaks leaves a change unknown, and a reading undone", async () => {
    globalThis.fetch = async () => {
        throw new TypeError("network");
    };
    assert.equal(await ending(http.post("/v1/unlock", {})), "unknown");
    assert.equal(await ending(http.get("/v1/locks")), "unreached");
});

test("a change carries the header that other origins cannot send", async () => {
    let seen: RequestInit | undefined;
    globalThis.fetch = async (_, init) => {
        seen = init;
        return new Response("{}");
    };
    await http.post("/v1/unlock", { name: "a" });
    assert.equal((seen?.headers as Record<string, string>)["Holdfast-Csrf"], "1");
    await http.get("/v1/locks");
    assert.equal((seen?.headers as Record<string, string>)["Holdfast-Csrf"], undefined);
});

test("an answer without a body is no error, and 401 asks to sign in", async () => {
    answering(200, "");
    assert.deepEqual(await http.delete("/v1/session"), {});
    answering(401, document("E_DENIED"));
    await assert.rejects(http.get("/v1/locks"), (error) => error instanceof CallError && error.isSignedOut);
});
