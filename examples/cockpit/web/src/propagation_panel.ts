import { button, h, setText } from "../../../../web/src/base/dom";
import { printable } from "../../../../web/src/base/text";
import { pause } from "../../../../clients/js/src/calls";
import { HoldfastError } from "../../../../clients/js/src/errors";
import { api, type Propagation } from "./api";
import type { Notices } from "./notices";

const pollMs = 300;

const wordsOf = ({ error }: Propagation): string => printable(error?.message ?? "nobody knows why");

/** What a propagation does: idle, at so many percent, failed, or from another source. */
export class PropagationPanel {
    private readonly text = h("p", { class: "figure-line" });
    private readonly bar = h("progress", { attrs: { max: 100, "aria-label": "Propagation" } });
    private readonly start = button("Propagate", () => void this.propagate(), "primary");
    private readonly retry = button("Retry", () => void this.propagate());
    readonly element = h(
        "section",
        { class: "panel propagation", attrs: { "aria-labelledby": "propagation-title" } },
        h("h2", { attrs: { id: "propagation-title" } }, "Propagation"),
        this.text,
        this.bar,
        h("div", { class: "actions" }, this.start, this.retry),
    );
    private isFollowing = false;
    private isElsewhere = false;
    private seen: Propagation = { state: "idle", progress: 0, by: null, error: null };

    constructor(
        private readonly project: string,
        private readonly mayEdit: boolean,
        private readonly dashboard: () => string,
        private readonly notices: Notices,
        private readonly ended: AbortSignal,
    ) {
        this.draw();
        void this.follow();
    }

    /** Whether its lock is held is known from elsewhere, at once. */
    lockSeen(isHeld: boolean): void {
        if (isHeld) void this.follow();
        else if (this.isElsewhere) {
            this.isElsewhere = false;
            this.draw();
        }
    }

    private async propagate(): Promise<void> {
        try {
            await api.propagate(this.project, this.dashboard());
            this.isElsewhere = false;
        } catch (error) {
            if (!(error instanceof HoldfastError)) throw error;
            this.isElsewhere = error.code === "E_LOCK_CONFLICT";
            if (!this.isElsewhere) this.notices.say(`The propagation did not begin: ${printable(error.message)}`);
        }
        this.draw();
        void this.follow();
    }

    /** Looks until it has ended. */
    private async follow(): Promise<void> {
        if (this.isFollowing) return;
        this.isFollowing = true;
        while (!this.ended.aborted) {
            try {
                this.see(await api.propagation(this.project));
            } catch (error) {
                if (!(error instanceof HoldfastError)) throw error;
                if (error.ending === "refused") break;
            }
            if (this.seen.state !== "running" && this.seen.state !== "elsewhere") break;
            await pause(pollMs, this.ended);
        }
        this.isFollowing = false;
    }

    private see(propagation: Propagation): void {
        const before = this.seen.state;
        this.seen = propagation;
        if (before === "running" && propagation.state === "done") this.notices.say("All dashboards are up to date.");
        if (before === "running" && propagation.state === "failed")
            this.notices.say(`The propagation failed: ${wordsOf(propagation)}`);
        this.draw();
    }

    private draw(): void {
        const { state, progress } = this.seen;
        const isRunning = state === "running";
        const isElsewhere = state === "elsewhere" || (this.isElsewhere && !isRunning);
        const text = isRunning
            ? `Propagating… ${Math.round(progress)} %`
            : isElsewhere
              ? "Propagation in progress from another source"
              : state === "failed"
                ? `Failed: ${wordsOf(this.seen)}`
                : "Ready to propagate";
        setText(this.text, text);
        this.element.dataset["state"] = isElsewhere ? "elsewhere" : state;
        this.bar.hidden = !isRunning;
        this.bar.value = progress;
        this.start.hidden = isRunning || isElsewhere || state === "failed" || !this.mayEdit;
        this.retry.hidden = !(isElsewhere || state === "failed") || !this.mayEdit;
    }
}
