import { button, h, type Child } from "../base/dom";

export interface DialogParts {
    title: string;
    className?: string;
    body: Child[];
    /** The label of the button that does it, and what it does; its promise keeps the dialog busy. */
    confirm?: { label: string; isDanger: boolean; run: () => Promise<void> };
    cancelLabel?: string;
}

let numbered = 0;

/** A modal dialog. Focus goes back to where it came from when it ends. */
export class Dialog {
    readonly element: HTMLDialogElement;
    private readonly body: HTMLElement;
    private readonly actions: HTMLElement;
    private isBusy = false;

    constructor(parts: DialogParts) {
        const id = `dialog-${++numbered}`;
        this.body = h("div", { class: "dialog-body" }, ...parts.body);
        this.actions = h("div", { class: "dialog-actions" });
        const form = h(
            "form",
            { attrs: { novalidate: true } },
            h("h2", { attrs: { id } }, parts.title),
            this.body,
            this.actions,
        );
        this.element = h("dialog", { class: parts.className ?? "", attrs: { "aria-labelledby": id } }, form);
        const cancel = button(parts.cancelLabel ?? "Cancel", () => this.close());
        this.actions.append(cancel);
        const { confirm } = parts;
        if (confirm) {
            const submit = h(
                "button",
                { class: confirm.isDanger ? "danger" : "primary", attrs: { type: "submit" } },
                confirm.label,
            );
            this.actions.append(submit);
            form.addEventListener("submit", (event) => {
                event.preventDefault();
                if (this.isBusy || !form.reportValidity()) return;
                this.isBusy = true;
                submit.disabled = true;
                cancel.disabled = true;
                submit.textContent = "Working…";
                void confirm.run().finally(() => {
                    this.isBusy = false;
                });
            });
        }
        this.element.addEventListener("cancel", (event) => {
            if (this.isBusy) event.preventDefault();
        });
        this.element.addEventListener("close", () => this.element.remove());
    }

    show(): void {
        document.body.append(this.element);
        this.element.showModal();
    }

    close(): void {
        this.element.close();
    }

    /** Another content, with nothing left to confirm. */
    finish(...body: Child[]): void {
        this.body.replaceChildren(...body.filter((child): child is Node => child instanceof Node));
        const done = button("Done", () => this.close(), "primary");
        this.actions.replaceChildren(done);
        done.focus();
    }
}

/** A labelled field of a form. */
export function field(label: string, input: HTMLElement, hint: string | null = null): HTMLElement {
    const id = `field-${++numbered}`;
    input.id = id;
    if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
    return h(
        "div",
        { class: "field" },
        h("label", { attrs: { for: id } }, label),
        input,
        hint && h("p", { class: "hint", attrs: { id: `${id}-hint` } }, hint),
    );
}
