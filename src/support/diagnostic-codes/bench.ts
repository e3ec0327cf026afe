/** Codes of benchmarks: TW980x. */
import { registerCodes } from "./entry.ts";

export const benchCodes = registerCodes({
  TW9801: {
    title: "nothing to time",
    cause: "`bench` times the entries of an object, each a function that prepares work.",
    example: "await bench(device, {});",
    remedy: "give an object with a function for each entry",
  },
  TW9802: {
    title: "option of a benchmark that cannot be",
    cause: "An option of `bench` is unknown, or its value is of another kind or out of range.",
    example: "await bench(device, entries, { rounds: 3 });",
    remedy: "give what the message expects, or leave the option out",
  },
  TW9803: {
    title: "entry that gives no work",
    cause:
      "An entry of `bench` is called once for each set of arrays, and gives a bound launch each time, or a function for the host's clock.",
    example: "await bench(device, { ours: () => device.run(axpy, inputs) });",
    remedy: "return device.bind(kernel, arrays), or a function that does the work",
  },
});
