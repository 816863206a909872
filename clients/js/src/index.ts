export { thisBrowser, type Browser } from "./browser.js";
export {
    Client,
    type AcquireOptions,
    type ClientOptions,
    type MoveOptions,
    type OverrideAnswer,
    type OverrideOptions,
    type Question,
} from "./client.js";
export { Drafts, type Draft } from "./drafts.js";
export { EditSession } from "./edit_session.js";
export type { Asked, EditMode, EditOptions, EditView, Loss, Obstacle } from "./edit_view.js";
export { HoldfastError, type Ending } from "./errors.js";
export { Hold, type Renewal, type TransferOptions } from "./hold.js";
export { LockWatch, whenFree, type Sight } from "./lock_watch.js";
export { SharedFeed } from "./shared_feed.js";
export { tabIdentity } from "./tab.js";
export type { FeedItem, FeedOptions } from "./events.js";
export type { AuditEvent, ErrorBody, EventKind, Grant, Lock, Override } from "./documents.js";
