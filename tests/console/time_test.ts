import assert from "node:assert/strict";
import { test } from "node:test";
import { instant, seconds, StoreClock, words } from "../../web/src/base/time";

test("durations are said as the command line says them", () => {
    assert.equal(words(850), "850 ms");
    assert.equal(words(24_000), "24 s");
    assert.equal(words(330_000), "5 min 30 s");
    assert.equal(words(7_200_000), "2 h");
    assert.equal(words(7_205_000), "2 h");
    assert.equal(words(273_600_000), "3 d 4 h");
});

test("a countdown never says less than a second of what is left", () => {
    assert.equal(seconds(1), "1 s");
    assert.equal(seconds(0), "0 s");
    assert.equal(seconds(61_000), "1 min 1 s");
});

test("what is no time is null", () => {
    assert.equal(instant(null), null);
    assert.equal(instant("soon"), null);
    assert.equal(instant("1970-01-01T00:00:01.000Z"), 1000);
});

test("the store's clock goes on by the monotonic one, whatever the host's wall clock says", () => {
    let monotonic = 100;
    const clock = new StoreClock(() => monotonic);
    monotonic = 120;
    clock.see(5_000, 100);
    assert.equal(clock.now(), 5_010);
    monotonic = 1_120;
    assert.equal(clock.now(), 6_010);
});
