import type { Client } from "../../../../clients/js/src/client";
import type { EditSession } from "../../../../clients/js/src/edit_session";
import { HoldfastError } from "../../../../clients/js/src/errors";
import { h } from "../../../../web/src/base/dom";
import { printable } from "../../../../web/src/base/text";
import { ask, askWhy } from "./dialogs";
import type { Notices } from "./notices";
import { editorOf, type NameOf } from "./words";

const questionMs = 600_000;

/** Asking for the lock of somebody else, and answering who asks. */
export class Access {
    constructor(
        private readonly edit: EditSession,
        private readonly client: Client,
        private readonly lock: string,
        private readonly nameOf: NameOf,
        private readonly notices: Notices,
        private readonly begin: () => void,
    ) {}

    ask(): void {
        const { obstacle } = this.edit.view;
        if (obstacle?.kind === "not_permitted") {
            const text = "Your account only looks. Somebody who manages accounts can change that.";
            ask("Cannot edit", [h("p", {}, text)], [{ label: "Done", isFirst: true }]);
            return;
        }
        if (obstacle?.kind !== "held") return this.begin();
        const body = h("p", {}, editorOf(obstacle.lock, this.nameOf));
        body.append(" is asked to let you edit. Whoever may approve it can answer, too.");
        askWhy("Request edit access", [body], "Request", (reason) => void this.request(reason));
    }

    answer(question: string, verdict: "approve" | "deny"): void {
        if (verdict === "approve") return void this.send(question, verdict, "");
        askWhy("Deny the request?", [], "Deny", (reason) => void this.send(question, verdict, reason));
    }

    private async request(reason: string): Promise<void> {
        await this.edit.requestOverride(reason, questionMs);
        const { failure } = this.edit.view;
        const refused = failure && `Not requested: ${printable(failure.message)}`;
        this.notices.say(refused ?? "Requested. You will be told.");
    }

    private async send(question: string, verdict: "approve" | "deny", reason: string): Promise<void> {
        if (this.edit.lease) return this.edit.answer(question, verdict, reason);
        try {
            await this.client.answerOverride(this.lock, question, { verdict, reason });
        } catch (error) {
            if (!(error instanceof HoldfastError)) throw error;
            this.notices.say(`Not answered: ${printable(error.message)}`);
        }
    }
}
