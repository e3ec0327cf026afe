/** Codes of the kernel language: TW1xxx. */
import { registerCodes } from "./entry.ts";

export const languageCodes = registerCodes({
  TW1001: {
    title: "traced value used as a JavaScript value",
    cause:
      "A traced value stands for a number that exists only when the kernel runs; JavaScript asked for the number now.",
    example: "if (i > 3) { … }",
    remedy: "use the value's methods (`i.gt(3)`) and `when` for control flow in the kernel",
  },
});
