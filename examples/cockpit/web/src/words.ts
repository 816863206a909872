// What a view means, in words. The states are those of docs/reference/edit-locks.md.
import type { EditView } from "../../../../clients/js/src/edit_view";
import type { Lock } from "../../../../clients/js/src/documents";
import { h, untrusted, type Child } from "../../../../web/src/base/dom";
import { instant, moment } from "../../../../web/src/base/time";
import { dashboardOf } from "./api";

export type NameOf = (dashboard: string) => string;

export const since = (lock: Lock): string => moment(instant(lock.acquired_at) ?? 0, Date.now());

/** `Architecture (ana)`; both may be anybody's text. */
export function editorOf(lock: Lock, nameOf: NameOf): HTMLElement {
    const who = h("span", {}, untrusted(nameOf(dashboardOf(lock)), "strong"));
    if (lock.user) who.append(" (", untrusted(lock.user), ")");
    return who;
}

/** Why the text is read-only, or null. */
export function reasonOf(view: EditView, nameOf: NameOf): Child[] | null {
    const { obstacle } = view;
    if (view.mayType) return null;
    switch (obstacle?.kind) {
        case "not_permitted":
            return ["You don't have edit permissions"];
        case "propagating":
            return ["Changes are propagating across dashboards"];
        case "held":
            return obstacle.isOwn
                ? [editorOf(obstacle.lock, nameOf), " is being edited in another tab of this browser"]
                : [editorOf(obstacle.lock, nameOf), " is currently being edited"];
        case "unreachable":
            return ["The lock service cannot be reached"];
        default:
            return view.mode === "editing" ? ["Asking whether the lock is still yours"] : null;
    }
}

/** Why Save cannot be pressed; null if it can. */
export function saveObstacle(view: EditView, isDirty: boolean): string | null {
    if (view.mode === "unguarded") return "The lock service cannot be reached: what you type is kept as a draft.";
    if (view.obstacle?.kind === "propagating") return "Changes are propagating: wait until that is done.";
    if (!view.isReachable) return "The lock service cannot be reached.";
    if (view.mode !== "editing") return "This dashboard is read-only.";
    if (!view.mayType) return "Asking whether the lock is still yours.";
    return isDirty ? null : "Nothing to save.";
}
