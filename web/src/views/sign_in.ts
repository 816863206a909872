import { HoldfastError } from "../../../clients/js/src/errors";
import { daemon } from "../model/daemon";
import { h, replace, untrusted } from "../base/dom";
import { field } from "./dialog";
import { notice } from "./parts";

/** Asks for a token until the daemon takes one. */
export function signInPage(done: () => void): HTMLElement {
    const token = h("input", {
        attrs: {
            type: "password",
            autocomplete: "current-password",
            required: true,
            spellcheck: "false",
            name: "token",
            autofocus: true,
        },
    });
    const problem = h("div", {});
    const submit = h("button", { class: "primary", attrs: { type: "submit" } }, "Sign in");
    const form = h(
        "form",
        { class: "card sign-in" },
        h("h1", {}, "Sign in"),
        h("p", { class: "hint" }, "With a token of this daemon, from ", h("code", {}, "holdfast token create"), "."),
        problem,
        field("Token", token),
        submit,
    );
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        submit.disabled = true;
        replace(problem);
        daemon
            .post("/v1/session", { token: token.value.trim() })
            .then(done, (error: unknown) => {
                const isRefused = error instanceof HoldfastError && error.ending === "refused";
                token.value = isRefused ? "" : token.value;
                replace(
                    problem,
                    notice(
                        "error",
                        isRefused ? "This token is not accepted" : "Signing in did not work",
                        h(
                            "p",
                            {},
                            untrusted(error instanceof HoldfastError ? error.message : "The answer cannot be used."),
                        ),
                    ),
                );
                token.focus();
            })
            .finally(() => {
                submit.disabled = false;
            });
    });
    return h("div", { class: "page page-center" }, form);
}
