import type { HoldfastError } from "../../../../clients/js/src/errors";
import { h } from "../../../../web/src/base/dom";
import { printable } from "../../../../web/src/base/text";
import { dashboardOf } from "./api";
import { ask } from "./dialogs";
import type { Notices } from "./notices";
import { editorOf, since, type NameOf } from "./words";

export interface WaysOut {
    nameOf: NameOf;
    /** It is edited in another tab of this browser. */
    isOwn: boolean;
    /** The lock of the propagation. */
    propagation: string;
    view: (dashboard: string) => void;
    override: () => void;
    editHere: () => void;
}

/** Says why an attempt to edit was refused, and what one can do. */
export function showCannotEdit(error: HoldfastError, notices: Notices, ways: WaysOut): void {
    const { holder } = error;
    if (error.ending !== "refused")
        return notices.say("The lock service cannot be reached. What you type is kept as a draft.");
    const later = { label: "Try again later" };
    if (error.code !== "E_LOCK_CONFLICT" || !holder || holder.name === ways.propagation) {
        const isPropagation = holder?.name === ways.propagation;
        const text = isPropagation
            ? "Changes are propagating across dashboards. That takes a minute at most."
            : printable(error.message);
        ask("Cannot edit", [h("p", {}, text)], [{ ...later, isFirst: true }]);
        return;
    }
    const body = h("p", {}, "Dashboard ", editorOf(holder, ways.nameOf));
    body.append(` is currently being edited, since ${since(holder)}.`);
    const instead = ways.isOwn
        ? { label: "Edit here instead", run: ways.editHere }
        : { label: "Request override", run: ways.override };
    const view = { label: "View dashboard", isFirst: true, run: () => ways.view(dashboardOf(holder)) };
    ask("Cannot edit", [body], [later, instead, view]);
}
