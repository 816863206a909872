import { h, replace, setText } from "../base/dom";
import { words } from "../base/time";
import type { UsualHold } from "../model/timeline";

/** How long a lock is held beside how long it usually is. */
export class UsualHoldView {
    readonly element = h("div", {});

    update(usual: UsualHold | null, held: number | null): void {
        this.element.hidden = held === null;
        if (held === null) return;
        if (!usual) {
            this.element.className = "hint";
            setText(this.element, "Fewer than five holds are known, so nothing is usual yet.");
            return;
        }
        const verdict =
            held <= usual.p50 ? "As usual so far" : held <= usual.p95 ? "Longer than most" : "Unusually long";
        const full = Math.max(usual.p95 * 1.25, held);
        const part = (time: number): string => `${Math.min(100, (100 * time) / full).toFixed(2)}%`;
        const fill = h("span", { class: "usual-fill" });
        fill.style.width = part(held);
        const marks = [usual.p50, usual.p95].map((time) => {
            const mark = h("span", { class: "usual-mark" });
            mark.style.left = part(time);
            return mark;
        });
        this.element.className = `usual ${held > usual.p95 ? "usual-long" : ""}`;
        replace(
            this.element,
            h("div", { class: "usual-bar", attrs: { "aria-hidden": "true" } }, fill, ...marks),
            h(
                "p",
                { class: "hint" },
                `${verdict}. Half of ${usual.samples} holds took at most ${words(usual.p50)}, ` +
                    `nearly all at most ${words(usual.p95)}.`,
            ),
        );
    }
}
