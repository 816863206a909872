import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces, plural, printable, shortened } from "../../web/src/base/text";

test("characters that nobody sees are written out", () => {
    assert.deepEqual(pieces("a\u202eb"), [
        { text: "a", isEscape: false },
        { text: "\\u202e", isEscape: true },
        { text: "b", isEscape: false },
    ]);
    assert.equal(printable("\u001b[31mred\u0007"), "\\u001b[31mred\\u0007");
    assert.equal(printable("one\ntwo\tthree"), "one\\ntwo\\tthree");
    for (const code of [0x00, 0x7f, 0x85, 0xad, 0x61c, 0x200b, 0x200f, 0x2028, 0x2066, 0xfeff, 0xfff9])
        assert.match(printable(String.fromCodePoint(code)), /^\\u/, code.toString(16));
    assert.match(printable("\u{e0041}"), /\\u\{e0041\}/);
    assert.match(printable("\ud800"), /\\ud800/);
});

test("markup stays the text that it is", () => {
    assert.equal(printable("<b>&amp;</b>"), "<b>&amp;</b>");
});

test("a text with another direction is isolated where only a string can stand", () => {
    assert.equal(printable("שלום"), "\u2068שלום\u2069");
    assert.equal(printable("migrate/prod"), "migrate/prod");
});

test("a long text is cut between characters", () => {
    assert.equal(shortened("👍👍👍👍", 3), "👍👍…");
    assert.equal(shortened("abc", 3), "abc");
});

test("numbers of things", () => {
    assert.equal(plural(1, "lock"), "1 lock");
    assert.equal(plural(2000, "lock"), "2,000 locks");
});
