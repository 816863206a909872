import type { EditView } from "../../../../clients/js/src/edit_view";
import { printable } from "../../../../web/src/base/text";

const lossWords = {
    expired: "Your edit lock expired due to inactivity.",
    taken: "Your edit lock was taken away. What you typed is kept as a draft.",
    handed_over: "You handed the edit lock over.",
};

export const isLost = (before: EditView | null, { loss }: EditView): boolean =>
    before?.mode === "editing" && loss !== null && before.loss === null;

/** What has happened between two views that their user did not do, in words. */
export function newsIn(before: EditView | null, view: EditView, dashboard: string): string[] {
    const news: string[] = [];
    if (isLost(before, view) && view.loss) news.push(lossWords[view.loss.kind]);
    if (view.mode === "editing" && before?.mode !== "editing") news.push(`You are editing ${dashboard}.`);
    const { request } = view;
    if (request?.state !== before?.request?.state) {
        // The reason is somebody else's text, which must not turn what stands around it.
        const why = request?.state === "denied" && request.reason ? `: ${printable(request.reason)}` : ".";
        if (request?.state === "denied") news.push(`Your request was denied${why}`);
        if (request?.state === "lapsed") news.push("Nobody answered your request.");
    }
    if (view.question && !before?.question) news.push("Somebody asks for edit access.");
    return news;
}
