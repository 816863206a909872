import { button, h, type Child } from "../../../../web/src/base/dom";
import { field } from "../../../../web/src/views/dialog";

let numbered = 0;
/** A reason has 1,024 bytes at most, and a character up to three. */
const mostCharacters = 340;

export interface Choice {
    label: string;
    run?: () => void;
    isFirst?: boolean;
}

/** A question that its user's click brought up. Focus goes back to where it came from. */
export function ask(title: string, body: Child[], choices: Choice[]): HTMLDialogElement {
    const id = `ask-${++numbered}`;
    const dialog = h("dialog", { class: "ask", attrs: { "aria-labelledby": id } });
    const actions = choices.map(({ label, run, isFirst }) =>
        button(
            label,
            () => {
                dialog.close();
                run?.();
            },
            isFirst ? "primary" : "",
        ),
    );
    dialog.append(
        h("h2", { attrs: { id } }, title),
        h("div", { class: "dialog-body" }, ...body),
        h("div", { class: "dialog-actions" }, ...actions),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
}

/** The same with a reason. */
export function askWhy(title: string, body: Child[], label: string, run: (reason: string) => void): void {
    const reason = h("textarea", { attrs: { rows: 3, maxlength: mostCharacters } });
    ask(
        title,
        [...body, field("Reason", reason)],
        [{ label: "Cancel" }, { label, isFirst: true, run: () => run(reason.value.trim()) }],
    );
    reason.focus();
}
