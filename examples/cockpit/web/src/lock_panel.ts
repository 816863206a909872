import type { EditView } from "../../../../clients/js/src/edit_view";
import { button, h, icon, replace, untrusted } from "../../../../web/src/base/dom";
import { dashboardOf } from "./api";
import { editorOf, since, type NameOf } from "./words";

export interface LockActions {
    release: () => void;
    override: () => void;
    answer: (question: string, verdict: "approve" | "deny") => void;
}

/** Who edits the project, and who would like to. */
export class LockPanel {
    private readonly text = h("p", { class: "lock-line" });
    private readonly release: HTMLButtonElement;
    private readonly override: HTMLButtonElement;
    private readonly question = h("div", { class: "question", attrs: { hidden: true } });
    readonly element: HTMLElement;
    private shown = "";

    constructor(
        private readonly nameOf: NameOf,
        private readonly mayApprove: boolean,
        private readonly mayEdit: boolean,
        private readonly actions: LockActions,
    ) {
        this.release = button("Release lock", actions.release);
        this.override = button("Request override", actions.override);
        this.element = h(
            "section",
            { class: "panel lock-status", attrs: { "aria-labelledby": "lock-title" } },
            h("h2", { attrs: { id: "lock-title" } }, "Edit lock"),
            this.text,
            h("div", { class: "actions" }, this.release, this.override),
            this.question,
        );
    }

    show(view: EditView): void {
        const { lock, obstacle } = view;
        const isHeld = lock?.state === "held";
        const isMine = view.mode === "editing";
        const question = isHeld && (isMine || this.mayApprove) ? lock.override : null;
        const isOwn = obstacle?.kind === "held" && obstacle.isOwn;
        const now = JSON.stringify([
            ...[lock?.lock_id, lock?.state, lock?.holder, isMine, question],
            ...[view.request, isOwn, view.isReachable],
        ]);
        if (now === this.shown) return;
        this.shown = now;
        this.element.dataset["state"] =
            lock !== null ? (isHeld ? "locked" : "unlocked") : view.isReachable ? "unknown" : "unreachable";
        if (lock === null) replace(this.text, view.isReachable ? "…" : "The lock service cannot be reached");
        else if (!isHeld) replace(this.text, icon("check"), "Project unlocked");
        else
            replace(
                this.text,
                icon("lock"),
                h(
                    "span",
                    {},
                    "Locked by ",
                    editorOf(lock, this.nameOf),
                    h("span", { class: "faint" }, ` since ${since(lock)}`),
                ),
            );
        this.release.hidden = !isMine;
        const isPending = view.request?.state === "pending";
        this.override.hidden = !isHeld || isMine || !this.mayEdit || isOwn;
        this.override.disabled = isPending;
        this.override.textContent = isPending ? "Requested, waiting for an answer" : "Request override";
        this.showQuestion(question);
    }

    private showQuestion(question: EditView["question"]): void {
        this.question.hidden = question === null;
        if (question === null) return replace(this.question);
        const dashboard = this.nameOf(dashboardOf({ holder: question.holder } as EditView["lock"]));
        replace(
            this.question,
            h(
                "p",
                {},
                untrusted(question.user ?? "Somebody", "strong"),
                " asks for edit access in ",
                untrusted(dashboard, "strong"),
                question.reason ? ": " : ".",
                question.reason ? untrusted(question.reason) : null,
            ),
            h(
                "div",
                { class: "actions" },
                button("Approve", () => this.actions.answer(question.lock_id, "approve"), "primary"),
                button("Deny", () => this.actions.answer(question.lock_id, "deny")),
            ),
        );
    }
}
