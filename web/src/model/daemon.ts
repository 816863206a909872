import { Calls } from "../../../clients/js/src/calls";

/** The daemon that served this page. */
export const daemon = new Calls({ url: "" });
