/**
 * Codes of pipelines and persistent work, part of the kernel language: TW11xx.
 *
 * | codes           | about                                        |
 * |-----------------|----------------------------------------------|
 * | TW1101 – TW1109 | blocks, counts and threads of a pipeline     |
 */
import { registerCodes } from "./entry.ts";

export const pipelineCodes = registerCodes({
  TW1101: {
    title: "block that cannot be copied",
    cause:
      "A pipeline copies windows between global and shared memory, so a block is a window on a global array whose sizes are known while tracing.",
    example: "pipeline({ grid: { k: 4 }, inputs: { x: ({ k }) => x.at(k, 3) } }, …)",
    remedy: "give a window with axes, such as `x.at(block(k, 64))`",
  },
  TW1102: {
    title: "count that a pipeline cannot have",
    cause:
      "An input has `depth` slots. A block is in use for 1 + `delay` steps, and it is copied at most `depth` − `delay` steps ahead.",
    example: "pipeline({ depth: 2, delay: 2, … }, …)",
    remedy: "give a count in the range that the message names, or a greater depth",
  },
  TW1103: {
    title: "one name for two things of a pipeline",
    cause: "The body of the steps gets axes, inputs and outputs by their names, in one object.",
    example: "pipeline({ grid: { k: 4 }, inputs: { k: … } }, …)",
    remedy: "rename one of them",
  },
  TW1104: {
    title: "order of inputs that there are not",
    cause: "`prefetch` lists inputs by name, in the order in which their copies are to start.",
    example: 'pipeline({ inputs: { a: … }, prefetch: ["b"], … }, …)',
    remedy: "list names of inputs",
  },
  TW1105: {
    title: "block that cannot be shared",
    cause:
      "Where several threads or the blocks of a cluster share a copy, each of them copies an equal part along one axis.",
    example: "a block of shape [1, 5] for two threads",
    remedy: "choose a block with an extent that their number divides",
  },
  TW1107: {
    title: "multicast without a cluster",
    cause:
      "A block is handed to the other blocks of a cluster along one axis of the grid, so the kernel's cluster must have several blocks along it.",
    example: 'kernel({ grid: { i: 8 } }, …), with multicast: "i"',
    remedy: "name an axis of `cluster`, or give the kernel one",
  },
});
