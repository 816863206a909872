import type { LiveLocks } from "../model/live";
import type { AuditEvent, Session } from "../../../clients/js/src/documents";

/** What every page knows. */
export interface Context {
    live: LiveLocks;
    session: Session;
    /** On whose behalf this browser looks at locks; chosen by the user where the daemon does not know it. */
    me(): string;
    setMe(name: string): void;
    /** Says something in the polite live region, and shows it for a moment. */
    announce(text: string): void;
}

export interface Page {
    readonly element: HTMLElement;
    readonly title: string;
    /** Called at most once for each frame when locks have changed, and once a second. */
    update(): void;
    event?(event: AuditEvent): void;
    /** The connection is back: what was read before may be out of date. */
    reconnected?(): void;
    close?(): void;
}
