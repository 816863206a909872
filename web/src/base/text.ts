// Names, holders and reasons are written by anybody. They reach the page as text nodes only, each in an element that
// isolates its direction, and characters that a reader cannot see are written out.

// The same ranges as is_unseen() in src/values/text.cpp, and the control characters.
const unseen: ReadonlyArray<readonly [number, number]> = [
    [0x00, 0x1f],
    [0x7f, 0x9f],
    [0xad, 0xad],
    [0x34f, 0x34f],
    [0x61c, 0x61c],
    [0x115f, 0x1160],
    [0x17b4, 0x17b5],
    [0x180b, 0x180f],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x206f],
    [0x3164, 0x3164],
    [0xd800, 0xdfff],
    [0xfe00, 0xfe0f],
    [0xfeff, 0xfeff],
    [0xffa0, 0xffa0],
    [0xfff0, 0xfffb],
    [0x1bca0, 0x1bca3],
    [0x1d173, 0x1d17a],
    [0xe0000, 0xe0fff],
];

function isUnseen(code: number): boolean {
    return unseen.some(([first, last]) => first <= code && code <= last);
}

function escaped(code: number): string {
    if (code === 0x0a) return "\\n";
    if (code === 0x09) return "\\t";
    return code <= 0xffff ? `\\u${code.toString(16).padStart(4, "0")}` : `\\u{${code.toString(16)}}`;
}

export interface Piece {
    text: string;
    isEscape: boolean;
}

/** Cuts a text into what can be shown as it is and what has to be written out. */
export function pieces(text: string): Piece[] {
    const result: Piece[] = [];
    for (const character of text) {
        const code = character.codePointAt(0) ?? 0;
        const isEscape = isUnseen(code);
        const shown = isEscape ? escaped(code) : character;
        const last = result[result.length - 1];
        if (last && last.isEscape === isEscape) last.text += shown;
        else result.push({ text: shown, isEscape });
    }
    return result;
}

/** For attributes and titles, where there is only a string. Isolated, so that it cannot turn what stands around it. */
export function printable(text: string): string {
    const shown = pieces(text)
        .map((piece) => piece.text)
        .join("");
    return /^[\x20-\x7e]*$/.test(shown) ? shown : `\u2068${shown}\u2069`;
}

/** The start of a long text. */
export function shortened(text: string, most: number): string {
    const characters = Array.from(text);
    return characters.length <= most ? text : `${characters.slice(0, most - 1).join("")}…`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
    return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
