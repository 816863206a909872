import assert from "node:assert/strict";
import { test } from "node:test";
import { Calls, repeated } from "../../clients/js/src/calls";
import { HoldfastError } from "../../clients/js/src/errors";

let answer: typeof fetch = async () => new Response("{}");
const calls = new Calls({ url: "http://127.0.0.1:1", fetch: (input, init) => answer(input, init) });

function answering(status: number, body: string): void {
    answer = async () => new Response(body, { status });
}

async function ending(call: Promise<unknown>): Promise<string> {
    try {
        await call;
        return "done";
    } catch (error) {
        assert.ok(error instanceof HoldfastError);
        return error.ending;
    }
}

const document = (code: string): string => JSON.stringify({ error: { code, message: "why" } });

test("a change has three endings, and none becomes another", async () => {
    answering(200, "{}");
    assert.equal(await ending(calls.post("/v1/unlock", {})), "done");
    answering(423, document("E_LOCK_CONFLICT"));
    assert.equal(await ending(calls.post("/v1/unlock", {})), "refused");
    answering(503, document("E_STORE_UNAVAILABLE"));
    assert.equal(await ending(calls.post("/v1/unlock", {})), "unreached");
    answering(504, document("E_OUTCOME_UNKNOWN"));
    assert.equal(await ending(calls.post("/v1/unlock", {})), "unknown");
});

test("what a proxy says of a change says nothing of what the daemon did", async () => {
    for (const status of [500, 502, 503, 504]) {
        answering(status, "<html>");
        assert.equal(await ending(calls.post("/v1/unlock", {})), "unknown", String(status));
    }
    answering(200, "<html>");
    assert.equal(await ending(calls.post("/v1/unlock", {})), "unknown");
});

test("a connection that breaks leaves a change unknown, and a reading undone", async () => {
    answer = async () => {
        throw new TypeError("network");
    };
    assert.equal(await ending(calls.post("/v1/unlock", {})), "unknown");
    assert.equal(await ending(calls.get("/v1/locks")), "unreached");
});

test("a change carries the header that other origins cannot send", async () => {
    let seen: RequestInit | undefined;
    answer = async (_, init) => {
        seen = init;
        return new Response("{}");
    };
    await calls.post("/v1/unlock", { name: "a" });
    assert.equal((seen?.headers as Record<string, string>)["Holdfast-Csrf"], "1");
    await calls.get("/v1/locks");
    assert.equal((seen?.headers as Record<string, string>)["Holdfast-Csrf"], undefined);
});

test("an answer without a body is no error, and 401 asks to sign in", async () => {
    answering(200, "");
    assert.deepEqual(await calls.delete("/v1/session"), {});
    answering(401, document("E_DENIED"));
    await assert.rejects(calls.get("/v1/locks"), (error) => error instanceof HoldfastError && error.isSignedOut);
});

test("a call is repeated until it is decided, and doubt is not forgotten", async () => {
    const answers = [
        [503, document("E_STORE_UNAVAILABLE")],
        [504, document("E_OUTCOME_UNKNOWN")],
        [503, document("E_STORE_UNAVAILABLE")],
    ] as const;
    let count = 0;
    answer = async () => {
        const [status, body] = answers[count++] ?? [200, "{}"];
        return new Response(body, { status });
    };
    assert.equal(await ending(repeated(() => calls.post("/v1/release", {}), 60_000)), "done");
    assert.equal(count, 4);
    count = 1;
    answer = async () => {
        const [status, body] = answers[Math.min(count++, 2)] ?? [200, "{}"];
        return new Response(body, { status });
    };
    assert.equal(await ending(repeated(() => calls.post("/v1/release", {}), 400)), "unknown");
});

test("a refusal is not repeated", async () => {
    let count = 0;
    answer = async () => {
        count += 1;
        return new Response(document("E_LOCK_CONFLICT"), { status: 423 });
    };
    assert.equal(await ending(repeated(() => calls.post("/v1/acquire", {}), 60_000)), "refused");
    assert.equal(count, 1);
});

test("a request tells until when it may be carried out, once the daemon's clock is known", async () => {
    const seen: Array<string | undefined> = [];
    answer = async (_, init) => {
        seen.push((init?.headers as Record<string, string>)["Holdfast-Before"]);
        return new Response("{}", { headers: { "Holdfast-Time": "1000000" } });
    };
    const own = new Calls({ url: "", timeoutMs: 5_000, fetch: (input, init) => answer(input, init) });
    await own.post("/v1/release", {});
    await own.post("/v1/release", {});
    assert.equal(seen[0], undefined);
    assert.ok(Number(seen[1]) >= 1_005_000);
});
