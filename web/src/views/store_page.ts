import { HoldfastError } from "../../../clients/js/src/errors";
import { daemon } from "../model/daemon";
import type { StoreDocument } from "../../../clients/js/src/documents";
import { button, h, icon, replace, untrusted } from "../base/dom";
import type { Context, Page } from "./context";
import { facts, loading, notice } from "./parts";

const gradeWords: Record<string, string> = {
    A: "What is granted survives a crash and a failover.",
    B: "What is granted survives a crash of processes, not a power cut or a failover.",
    C: "What is granted can be lost in normal operation.",
};

const propertyWords: Record<string, string> = {
    is_shared: "Shared with other processes",
    has_sessions: "Leases can end with their process",
    pushes: "Waiters are woken at once",
    commits_batches_as_one: "A batch is there as a whole or not at all",
    shows_only_durable: "What is seen is durable",
    clock_resolution_ms: "The clock counts in steps of",
    largest_value: "Largest value",
};

function shown(name: string, value: unknown): string {
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (name === "clock_resolution_ms") return `${String(value)} ms`;
    if (value === null) return "only limited by memory";
    return typeof value === "number" ? `${value.toLocaleString("en")} bytes` : String(value);
}

/** What the store promises, and how it is. */
export class StorePage implements Page {
    readonly title = "Store";
    readonly element: HTMLElement;
    private readonly content = h("div", { class: "sections" });

    constructor(private readonly context: Context) {
        this.element = h(
            "div",
            { class: "page" },
            h("div", { class: "page-head" }, h("h1", {}, "Store")),
            this.content,
        );
        replace(this.content, loading(4));
        void this.read(false);
    }

    update(): void {}

    reconnected(): void {
        void this.read(false);
    }

    private async read(isExamined: boolean): Promise<void> {
        try {
            this.show(await daemon.get<StoreDocument>("/v1/store", isExamined ? { examine: 1 } : {}), isExamined);
        } catch (error) {
            const text = error instanceof HoldfastError ? error.message : "The answer of the daemon cannot be used.";
            replace(
                this.content,
                notice(
                    "error",
                    "The store cannot be asked",
                    h("p", {}, untrusted(text)),
                    button("Try again", () => void this.read(isExamined)),
                ),
            );
        }
    }

    private show(store: StoreDocument, isExamined: boolean): void {
        const grade = /^[ABC]$/.test(store.grade) ? store.grade : "?";
        const checks = store.checks ?? [];
        replace(
            this.content,
            h(
                "div",
                { class: "cards" },
                h(
                    "div",
                    { class: "card" },
                    h("h2", {}, "Grade"),
                    h(
                        "div",
                        { class: "grade-line" },
                        h("span", { class: `grade grade-${grade}` }, grade),
                        h("p", {}, gradeWords[grade] ?? "Not known."),
                    ),
                    h("ul", { class: "reasons" }, ...store.reasons.map((reason) => h("li", {}, untrusted(reason)))),
                ),
                h(
                    "div",
                    { class: "card" },
                    h("h2", {}, "Identity"),
                    facts(
                        ["Store", store.store !== undefined && untrusted(store.store)],
                        [
                            "Store id",
                            store.store_id === null ? "not created yet" : h("code", { class: "id" }, store.store_id),
                        ],
                        ["Daemon", store.version !== undefined && untrusted(store.version)],
                        [
                            "You",
                            h(
                                "span",
                                {},
                                untrusted(this.context.session.user ?? "not known by name"),
                                `, ${this.context.session.role}`,
                            ),
                        ],
                    ),
                ),
            ),
            h(
                "section",
                { class: "panel" },
                h("div", { class: "panel-head" }, h("h2", {}, "What it can do")),
                facts(
                    ...Object.entries(store.properties).map(([name, value]): [string, string] => [
                        propertyWords[name] ?? name,
                        shown(name, value),
                    ]),
                ),
            ),
            h(
                "section",
                { class: "panel" },
                h(
                    "div",
                    { class: "panel-head" },
                    h("h2", {}, "Examination"),
                    this.context.session.role === "admin" &&
                        button(isExamined ? "Examine again" : "Examine", () => void this.read(true)),
                ),
                checks.length === 0
                    ? h(
                          "p",
                          { class: "faint" },
                          isExamined
                              ? "There was nothing to examine."
                              : "The same as holdfast doctor, for administrators.",
                      )
                    : h(
                          "ul",
                          { class: "checks" },
                          ...checks.map((check) =>
                              h(
                                  "li",
                                  { class: check.ok ? "check-good" : "check-bad" },
                                  icon(check.ok ? "check" : "cross"),
                                  h(
                                      "div",
                                      {},
                                      h("strong", {}, untrusted(check.name)),
                                      h("span", { class: "sr-only" }, check.ok ? " is fine: " : " needs attention: "),
                                      h("p", { class: "hint" }, untrusted(check.detail)),
                                  ),
                              ),
                          ),
                      ),
            ),
        );
    }
}
