export { Client, type AcquireOptions, type ClientOptions } from "./client.js";
export { HoldfastError, type Ending } from "./errors.js";
export { Hold } from "./hold.js";
export type { FeedItem, FeedOptions } from "./events.js";
export type { AuditEvent, ErrorBody, EventKind, Grant, Lock, Override } from "./documents.js";
