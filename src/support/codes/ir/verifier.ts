/** Codes of the verifier: TW22xx. */
import { registerCodes } from "../entry.ts";

export const verifierCodes = registerCodes({});
