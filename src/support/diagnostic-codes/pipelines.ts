/**
 * Codes of pipelines and persistent work, part of the kernel language: TW11xx.
 *
 * | codes           | about                                        |
 * |-----------------|----------------------------------------------|
 * | TW1101 – TW1109 | blocks, counts and threads of a pipeline     |
 * | TW1110 – TW1112 | tiles of persistent kernels, and their stores |
 * | TW1113          | blocks that are said to stay                 |
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
      "Where several threads share a copy, each of them copies an equal part along one axis. A block that is multicast begins at a multiple of 128 bytes in shared memory, as every slot of it then does.",
    example: "a block of shape [1, 5] for two threads",
    remedy:
      "choose a block with an extent that their number divides, or of a multiple of 128 bytes where it is multicast",
  },
  TW1106: {
    title: "threads that a pipeline cannot have",
    cause:
      "The threads that run `pipeline` share its copies: they are one thread, or all of the block; warps of one thread have a pipeline each, without multicast. `warpSpecialized` gives one thread the copies and all others the work, so it stands where all of them come, in a kernel of two threads or more.",
    example: "warpSpecialized({ … }, () => { pipeline({ … }, …); })",
    remedy:
      'declare threads such as ["copy", "compute"], and move the call to where the message says',
  },
  TW1107: {
    title: "no blocks of a cluster along an axis",
    cause:
      "A multicast hands a block of data to the other blocks of a cluster along axes, and a cluster's barrier is arrived at by all of them, so the kernel's cluster must have several blocks along these.",
    example: 'kernel({ grid: { i: 8 } }, …), with multicast: "i"',
    remedy: "name an axis of `cluster`, or give the kernel one",
  },
  TW1108: {
    title: "steps of a tile not run once",
    cause:
      "The copying thread fills the slots for the steps of every tile once. The body of a tile therefore calls `steps` exactly once, and not in a loop or a branch; in the body of a step, `manual` blocks are waited for and released once each.",
    example: "warpSpecialized({ … }, ({ steps }) => { loop(2, () => { steps(…); }); })",
    remedy: "call it once, directly in the body",
  },
  TW1109: {
    title: "block that is not there yet",
    cause:
      "A block that depends on the step exists in the body of the steps alone; the body of a tile has the blocks that do not.",
    example:
      "warpSpecialized({ inputs: { a: ({ k }) => … }, … }, ({ a, steps }) => { a.load(); … })",
    remedy: "use the block in the body that `steps` takes",
  },
  TW1110: {
    title: "tiles that cannot be dealt",
    cause:
      "Tiles are dealt to the blocks along one axis of the kernel's grid, or of the one that a kernel without a grid gets for them; orders other than plain number the tiles of two axes.",
    example: 'tiles({ i: 8 }, { order: "snake" })',
    remedy: "name an axis of the grid with `along`, and give tiles two axes or the plain order",
  },
  TW1111: {
    title: "tile that does not go through its buffers",
    cause: "`storeThrough` divides a tile along one axis into equal pieces of the buffers' shape.",
    example: "storeThrough(smem [2, 64, 64], tile [64, 96], …)",
    remedy: "give buffers whose pieces divide the tile along one axis",
  },
  TW1112: {
    title: "tiles that cannot be split",
    cause:
      "Tiles are split along one axis of steps, of which all have the same number. What the steps of each part come to, one tile a computing thread, is handed to the block that has the first part, which does the rest in the third function of `steps`.",
    example: "tiles({ i: 5 }, { streamK: { sums, flags } }), with steps(sum, body) alone",
    remedy: "give `steps` what is done with the sums as its third function, and `grid` one axis",
  },
  TW1113: {
    title: "stationary block that moves",
    cause:
      "A block that is declared `stationary` is copied once, or once for each tile, so its window is the same in every step.",
    example: "inputs: { a: { at: ({ k }) => x.at(k), stationary: true } }",
    remedy: "leave `stationary` out, or take the step's index out of the window",
  },
});
