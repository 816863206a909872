import type { EditView } from "../../../../clients/js/src/edit_view";
import { button, h, icon, replace, setText } from "../../../../web/src/base/dom";
import { reasonOf, saveObstacle, type NameOf } from "./words";

export interface EditorActions {
    edit: () => void;
    stop: () => void;
    save: () => void;
    typed: () => void;
    askForAccess: () => void;
    takeFromOwnTab: () => void;
    takeOverStale: () => void;
    tellWhenFree: () => void;
    resume: () => void;
    dismiss: () => void;
}

/** A dashboard's text, whether it can be typed into, and why not. */
export class EditorPanel {
    isSaving = false;
    private readonly title = h("h1", { attrs: { id: "dashboard-title", tabindex: -1 } });
    private readonly version = h("span", { class: "summary" });
    private readonly mode = h("span", { class: "badge" });
    private readonly area = h("textarea", {
        class: "text",
        attrs: { "aria-labelledby": "dashboard-title", rows: 14, readonly: true, spellcheck: "false" },
    });
    private readonly bannerText = h("p", {});
    private readonly bannerActions = h("div", { class: "actions" });
    private readonly banner = h("div", { class: "read-only", attrs: { hidden: true } });
    private readonly warning = h("p", { class: "warning", attrs: { hidden: true } });
    private readonly failure = h("p", { class: "failure", attrs: { hidden: true } });
    private readonly expired: HTMLElement;
    private readonly editButton: HTMLButtonElement;
    private readonly stopButton: HTMLButtonElement;
    private readonly saveButton: HTMLButtonElement;
    private readonly saveReason = h("span", { class: "hint", attrs: { id: "save-reason" } });
    readonly element: HTMLElement;
    private shownBanner = "";

    constructor(
        private readonly nameOf: NameOf,
        private readonly actions: EditorActions,
    ) {
        this.editButton = button("Edit", actions.edit, "primary");
        this.stopButton = button("Stop editing", actions.stop);
        this.saveButton = button("Save", actions.save, "primary", { "aria-describedby": "save-reason" });
        this.area.addEventListener("input", actions.typed);
        this.banner.append(icon("lock"), this.bannerText, this.bannerActions);
        // Nobody asked for it, so it is not modal, and leaves the focus where it is.
        this.expired = h(
            "section",
            { class: "expired", attrs: { "aria-labelledby": "expired-title", hidden: true } },
            h("h2", { attrs: { id: "expired-title" } }, "Session expired"),
            h("p", {}, "Your edit session expired due to inactivity. What you typed is kept as a draft."),
            h(
                "div",
                { class: "actions" },
                button("Resume editing", actions.resume, "primary"),
                button("Go on reading", actions.dismiss),
            ),
        );
        this.element = h(
            "section",
            { class: "panel editor", attrs: { "aria-labelledby": "dashboard-title" } },
            h("div", { class: "panel-head" }, h("div", { class: "page-head" }, this.title, this.version), this.mode),
            this.banner,
            this.expired,
            this.warning,
            this.area,
            this.failure,
            h("div", { class: "actions" }, this.editButton, this.saveButton, this.stopButton, this.saveReason),
        );
    }

    /** Half a character, which a page can leave behind, cannot be sent. */
    get text(): string {
        return this.area.value.replace(/\p{Surrogate}/gu, "\ufffd");
    }

    showText(name: string, text: string, version: number): void {
        setText(this.title, name);
        this.showVersion(version);
        this.replaceText(text);
    }

    replaceText(text: string): void {
        if (this.area.value !== text) this.area.value = text;
    }

    showVersion(version: number): void {
        setText(this.version, `version ${version}`);
    }

    showFailure(text: string | null): void {
        this.failure.hidden = text === null;
        setText(this.failure, text ?? "");
    }

    /** Where one goes on, if the focus is nowhere. */
    focusIfLost(): void {
        const { activeElement } = document;
        if (!activeElement || activeElement === document.body || !activeElement.checkVisibility()) this.focus();
    }

    focus(): void {
        this.area.focus();
    }

    show(view: EditView, isDirty: boolean): void {
        const isOpen = view.mode === "editing" || view.mode === "unguarded";
        this.element.dataset["mode"] = view.mayType ? view.mode : "read-only";
        // Read-only, not disabled: whoever reads keeps the focus and can select.
        this.area.readOnly = !view.mayType;
        setText(this.mode, view.mayType ? (view.mode === "editing" ? "Editing" : "Not locked") : "Read-only");
        this.mode.className = `badge ${view.mayType ? "badge-held" : "badge-free"}`;
        this.editButton.hidden = isOpen || view.obstacle?.kind === "not_permitted";
        this.editButton.disabled = view.mode === "asking";
        setText(this.editButton, view.mode === "asking" ? "Asking…" : "Edit");
        this.stopButton.hidden = !isOpen;
        this.saveButton.hidden = !isOpen;
        const obstacle = this.isSaving ? "Saving…" : saveObstacle(view, isDirty);
        this.saveButton.disabled = obstacle !== null;
        this.saveReason.hidden = !isOpen;
        setText(this.saveReason, obstacle ?? "");
        this.expired.hidden = view.loss?.kind !== "expired" || isOpen;
        const warns = !view.isReachable && view.mayType;
        this.warning.hidden = !warns;
        setText(
            this.warning,
            warns
                ? "The lock service cannot be reached. You can go on typing: your text is kept as a draft, and can " +
                      "be saved when the service answers and nobody else was editing meanwhile."
                : "",
        );
        this.showBanner(view);
    }

    private showBanner(view: EditView): void {
        const reason = view.mode === "asking" ? null : reasonOf(view, this.nameOf);
        const { obstacle } = view;
        const isHeld = obstacle?.kind === "held";
        const isStale = isHeld && obstacle.isStale;
        const isOwn = isHeld && obstacle.isOwn;
        const now = JSON.stringify([
            ...[view.mode, reason === null, obstacle?.kind, isHeld && obstacle.lock.lock_id],
            ...[isStale, isOwn, view.request?.state],
        ]);
        if (now === this.shownBanner) return;
        this.shownBanner = now;
        this.banner.hidden = reason === null;
        if (reason === null) return;
        replace(this.bannerText, h("strong", {}, "Read-only mode: "), ...reason, ".");
        const { actions } = this;
        const isPending = view.request?.state === "pending";
        const asks = isHeld || obstacle?.kind === "not_permitted" || obstacle?.kind === "propagating";
        replace(
            this.bannerActions,
            isOwn && button("Edit here instead", actions.takeFromOwnTab, "primary"),
            isHeld && !isOwn && isStale && button("Take over, it is idle", actions.takeOverStale, "primary"),
            asks &&
                !isOwn &&
                view.mode === "viewing" &&
                !isPending &&
                button("Request edit access", actions.askForAccess),
            isPending && h("span", { class: "hint" }, "Requested, waiting for an answer."),
            (isHeld || obstacle?.kind === "propagating") &&
                button("Tell me when it is free", actions.tellWhenFree, "plain"),
        );
    }
}
