const units: ReadonlyArray<readonly [string, number]> = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000],
];

/** For people, as the command line says it: `24 s`, `5 min 30 s`, `2 h`, `3 d 4 h`. Below a second: `850 ms`. */
export function words(ms: number): string {
    if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
    let rest = Math.floor(ms / 1000) * 1000;
    const said: string[] = [];
    for (const [name, length] of units) {
        const count = Math.floor(rest / length);
        rest -= count * length;
        if (count > 0) said.push(`${count} ${name}`);
        if (said.length === 2 || (said.length === 1 && count === 0)) break;
    }
    return said.join(" ");
}

/** Like words, but never shorter than a second, so that a countdown does not flicker. */
export function seconds(ms: number): string {
    return ms < 1000 ? `${Math.max(0, Math.ceil(ms / 1000))} s` : words(ms);
}

/** How long ago, without the smaller unit. */
export function ago(ms: number): string {
    return `${seconds(ms).split(" ").slice(0, 2).join(" ")} ago`;
}

const two = (value: number): string => String(value).padStart(2, "0");

export function clockTime(at: number): string {
    const date = new Date(at);
    return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function day(at: number): string {
    const date = new Date(at);
    return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** The time, and the day unless it is today. */
export function moment(at: number, now: number): string {
    return day(at) === day(now) ? clockTime(at) : `${day(at)} ${clockTime(at)}`;
}

/** An RFC 3339 time as a number, or null. */
export function instant(text: string | null | undefined): number | null {
    if (!text) return null;
    const at = Date.parse(text);
    return Number.isNaN(at) ? null : at;
}

/**
 * The clock of the store, which alone judges whether a lease has run out. It is read from answers (`as_of`) and goes on
 * by the page's monotonic clock in between.
 */
export class StoreClock {
    private offset: number | null = null;

    constructor(private readonly monotonic: () => number = () => performance.now()) {}

    /** `at` was true at some moment after `asked`, on the monotonic clock. */
    see(at: number, asked: number): void {
        this.offset = at - (asked + this.monotonic()) / 2;
    }

    now(): number {
        return this.offset === null ? Date.now() : this.offset + this.monotonic();
    }
}
