/** Codes of tuning: TW981x. */
import { registerCodes } from "./entry.ts";

export const tuneCodes = registerCodes({
  TW9811: {
    title: "file that is no tuning file",
    cause:
      "A tuning file begins with a line that names its version, and has a measurement or a rejection in every other line.",
    example: 'await open("gpu", { tuning: ["package.json"] });',
    remedy: "name a file that tilewright tune wrote, or remove it and tune again",
  },
  TW9812: {
    title: "nothing to choose from",
    cause:
      "Every choice of an operation was rejected for these sizes, `where` leaves none of them, or `with` was called on an operation that has none or whose choice is made.",
    example: "tunable({ name, choices: { tile: [64] }, where: ({ tile }) => tile > 64, make })",
    remedy:
      "offer choices that fit, the report has the reason of each rejection; leave `with` out where there is nothing to choose",
  },
  TW9813: {
    title: "operation that cannot be tuned",
    cause:
      "`tunable` takes a name, choices with at least one value each, and a function that makes a kernel or an operation of the same arguments from each choice.",
    example: 'tunable({ name: "mine", choices: { tile: [] }, make })',
    remedy: "give what the message expects",
  },
  TW9814: {
    title: "work that was never tuned",
    cause:
      "The device was opened with requireTuned, and none of its tuning files has a measurement for these sizes on this GPU.",
    example: 'await open("gpu", { tuning: ["tuning.jsonl"], requireTuned: true });',
    remedy: "tune the sizes, or leave requireTuned out",
  },
  TW9815: {
    title: "option of a tuner that cannot be",
    cause: "An option of `tune` is unknown, or its value is of another kind or out of range.",
    example: "await tune(device, mine, { cases: [] });",
    remedy: "give what the message expects, or leave the option out",
  },
});
