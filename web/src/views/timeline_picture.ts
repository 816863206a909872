import { h, svg } from "../base/dom";
import { plural, printable, shortened } from "../base/text";
import { clockTime, day, moment, words } from "../base/time";
import { holderWords } from "../model/locks";
import { ticks, type HoldSpan, type Mark, type Timeline, type WaitSpan } from "../model/timeline";

const laneHeight = 30;
const top = 8;
const mostLanes = 8;

const markWords: Partial<Record<Mark["kind"], string>> = {
    stolen: "taken over after it had run out",
    broken: "broken",
    expired: "ran out",
    transferred: "handed over",
    override_approved: "given away on request",
    fenced: "a stale write was refused",
    repaired: "repaired",
};

/** Signs that differ in shape, for those who do not see colours. */
const markShapes: Partial<Record<Mark["kind"], string>> = {
    stolen: "M0-7L7 0 0 7-7 0z",
    broken: "M-5-5L5 5M5-5L-5 5",
    expired: "M0-6a6 6 0 1 0 .01 0zM0-3V0l2.5 1.5",
    transferred: "M-6-4L0 0-6 4M0-4L6 0 0 4",
    override_approved: "M-6-4L0 0-6 4M0-4L6 0 0 4",
    fenced: "M-5-6H5V1L0 6-5 1z",
    repaired: "M0-6V6M-6 0H6",
};

function nameOf(hold: HoldSpan): string {
    return hold.user ?? holderWords(hold.holder);
}

/** The lanes of the picture: one for each holder, the newest first; the rarest share the last one. */
function lanesOf(holds: HoldSpan[]): { names: string[]; laneOf: (name: string) => number } {
    const names: string[] = [];
    for (const hold of [...holds].reverse()) if (!names.includes(nameOf(hold))) names.push(nameOf(hold));
    if (names.length > mostLanes) names.splice(mostLanes - 1, names.length, `${names.length - mostLanes + 1} others`);
    return {
        names,
        laneOf: (name) => {
            const lane = names.indexOf(name);
            return lane < 0 ? names.length - 1 : lane;
        },
    };
}

function tickLabel(at: number, span: number): string {
    if (span > 3 * 86_400_000) return day(at).slice(5);
    return span > 600_000 ? clockTime(at).slice(0, 5) : clockTime(at);
}

/** Who held the lock when. What it shows is also in the table of events below it. */
export function timelinePicture(timeline: Timeline, width: number, now: number): Element {
    const { names, laneOf } = lanesOf(timeline.holds);
    const label = width < 560 ? 0 : 170;
    const right = width - 12;
    const laneTop = (lane: number): number => top + lane * laneHeight + (label === 0 ? 16 * (lane + 1) : 0);
    const bottom = laneTop(names.length) - (label === 0 ? 16 : 0);
    const hasWaits = timeline.waits.length > 0;
    const axis = bottom + (hasWaits ? laneHeight : 4);
    const span = Math.max(1000, timeline.to - timeline.from);
    const x = (at: number): number =>
        label + 6 + ((Math.max(at, timeline.from) - timeline.from) / span) * (right - label - 6);

    const grid = ticks(timeline.from, timeline.to, Math.max(2, (right - label) / 110)).flatMap((at) => [
        svg("line", { class: "tl-grid", attrs: { x1: x(at), x2: x(at), y1: top, y2: axis } }),
        svg(
            "text",
            { class: "tl-tick", attrs: { x: x(at), y: axis + 16, "text-anchor": "middle" } },
            tickLabel(at, span),
        ),
    ]);
    const lanes = names.map((name, lane) =>
        svg(
            "text",
            {
                class: "tl-name",
                attrs:
                    label === 0
                        ? { x: 6, y: laneTop(lane) - 4 }
                        : { x: label - 8, y: laneTop(lane) + 18, "text-anchor": "end" },
            },
            printable(shortened(name, label === 0 ? 48 : 22)),
        ),
    );
    const hold = (each: HoldSpan): SVGElement =>
        svg(
            "rect",
            {
                class: `tl-hold tl-${each.end.replace(" ", "-")}`,
                attrs: {
                    x: x(each.from),
                    y: laneTop(laneOf(nameOf(each))) + 5,
                    width: Math.max(3, x(each.to) - x(each.from)),
                    height: 18,
                    rx: 4,
                },
            },
            svg(
                "title",
                {},
                `${printable(holderWords(each.holder))}, token ${each.token}: from ${moment(each.from, now)}, ` +
                    `${words(each.to - each.from)}, ${each.end}${each.isCut ? "; it began earlier" : ""}`,
            ),
        );
    const wait = (each: WaitSpan): SVGElement =>
        svg(
            "rect",
            {
                class: `tl-wait tl-answer-${each.answer}`,
                attrs: {
                    x: x(each.from),
                    y: bottom + 8,
                    width: Math.max(4, x(each.to) - x(each.from)),
                    height: 12,
                    rx: 6,
                },
            },
            svg(
                "title",
                {},
                `${printable(holderWords(each.asker))} asked at ${moment(each.from, now)} and waited ` +
                    `${words(each.to - each.from)}: ${each.answer}`,
            ),
        );
    const mark = (each: Mark): SVGElement => {
        const lane = laneOf(each.event.user ?? holderWords(each.event.holder));
        return svg(
            "g",
            {
                class: `tl-mark tl-mark-${each.kind}`,
                attrs: { transform: `translate(${x(each.at)} ${laneTop(lane) + 14})` },
            },
            svg("circle", { attrs: { r: 9 } }),
            svg("path", { attrs: { d: markShapes[each.kind] ?? "" } }),
            svg("title", {}, `${moment(each.at, now)}: ${markWords[each.kind] ?? each.kind}`),
        );
    };
    const text =
        `${plural(timeline.holds.length, "hold")} by ${plural(names.length, "holder")} from ` +
        `${moment(timeline.from, now)} to ${moment(timeline.to, now)}`;
    const picture = svg(
        "svg",
        {
            class: "timeline",
            attrs: { viewBox: `0 0 ${width} ${axis + 24}`, width, height: axis + 24, role: "img", "aria-label": text },
        },
        ...grid,
        svg("line", { class: "tl-axis", attrs: { x1: label + 6, x2: right, y1: axis, y2: axis } }),
        ...lanes,
        ...timeline.holds.map(hold),
        hasWaits &&
            svg(
                "text",
                {
                    class: "tl-name tl-faint",
                    attrs:
                        label === 0 ? { x: 6, y: bottom + 4 } : { x: label - 8, y: bottom + 18, "text-anchor": "end" },
                },
                "asked for it",
            ),
        ...timeline.waits.map(wait),
        ...timeline.marks.map(mark),
    );
    return h("figure", { class: "timeline-frame" }, picture, legend(timeline));
}

function legend(timeline: Timeline): HTMLElement {
    const kinds = [...new Set(timeline.marks.map((mark) => mark.kind))];
    return h(
        "figcaption",
        { class: "legend" },
        h("span", {}, h("span", { class: "swatch swatch-hold" }), "held"),
        timeline.holds.some((hold) => hold.end === "expired" || hold.end === "stolen") &&
            h("span", {}, h("span", { class: "swatch swatch-late" }), "ran out"),
        timeline.waits.length > 0 && h("span", {}, h("span", { class: "swatch swatch-wait" }), "waited for an answer"),
        ...kinds.map((kind) =>
            h(
                "span",
                {},
                svg(
                    "svg",
                    {
                        class: `tl-mark tl-mark-${kind} legend-mark`,
                        attrs: { viewBox: "-10 -10 20 20", "aria-hidden": "true" },
                    },
                    svg("circle", { attrs: { r: 9 } }),
                    svg("path", { attrs: { d: markShapes[kind] ?? "" } }),
                ),
                markWords[kind] ?? kind,
            ),
        ),
    );
}
