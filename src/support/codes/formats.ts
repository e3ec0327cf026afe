/** Codes of number formats and host arrays: TW0xxx. */
import { registerCodes } from "./entry.ts";

export const formatCodes = registerCodes({
  TW0001: {
    title: "data does not fit the shape",
    cause: "The typed array given for a host array holds another number of elements than its shape asks for.",
    example: "hostArray(f32, [4, 4], new Float32Array(15))",
    remedy: "give as many elements as the product of the shape",
  },
});
