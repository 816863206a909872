import { h, replace, untrusted } from "../../../../web/src/base/dom";
import { instant, moment } from "../../../../web/src/base/time";
import { HoldfastError } from "../../../../clients/js/src/errors";
import { api, type AuditEntry } from "./api";
import type { NameOf } from "./words";

const most = 8;
const kinds: Record<string, string> = { propagation: "Propagation", validation: "Validation queue" };

/** Who held which lock of the project, newest first. */
export class ActivityPanel {
    private readonly rows = h("tbody");
    readonly element = h(
        "section",
        { class: "panel activity", attrs: { "aria-labelledby": "activity-title" } },
        h("h2", { attrs: { id: "activity-title" } }, "Activity"),
        h(
            "table",
            {},
            h(
                "thead",
                {},
                h("tr", {}, ...["Who", "From", "Until"].map((text) => h("th", { attrs: { scope: "col" } }, text))),
            ),
            this.rows,
        ),
    );
    private isReading = false;
    private mustReadAgain = false;

    constructor(
        private readonly project: string,
        private readonly nameOf: NameOf,
    ) {}

    async read(): Promise<void> {
        this.mustReadAgain = true;
        if (this.isReading) return;
        this.isReading = true;
        while (this.mustReadAgain) {
            this.mustReadAgain = false;
            try {
                const entries = await api.audit(this.project);
                replace(this.rows, ...entries.slice(0, most).map((entry) => this.row(entry)));
            } catch (error) {
                // It is read again with the next change.
                if (!(error instanceof HoldfastError)) throw error;
            }
        }
        this.isReading = false;
    }

    private row({ type, dashboard, user, acquired_at, released_at, ended_by }: AuditEntry): HTMLElement {
        const what = type === "project" ? this.nameOf(dashboard ?? "") : (kinds[type] ?? type);
        const end = released_at ? moment(instant(released_at) ?? 0, Date.now()) : "now";
        return h(
            "tr",
            {},
            h("td", {}, untrusted(what), user ? h("span", { class: "line faint" }, untrusted(user)) : null),
            h("td", { class: "number" }, moment(instant(acquired_at) ?? 0, Date.now())),
            h("td", { class: "number" }, end, ended_by && ended_by !== "released" ? ` (${ended_by})` : ""),
        );
    }
}
