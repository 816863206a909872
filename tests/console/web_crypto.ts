// Node.js 18, as Debian 12 has it, keeps in a module what browsers and later versions have as a global.
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto as Crypto;
