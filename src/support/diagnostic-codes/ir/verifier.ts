/** Codes of the verifier: TW22xx. */
import { registerCodes } from "../entry.ts";

export const verifierCodes = registerCodes({
  TW2096: {
    title: "in-flight accumulator through one branch only",
    cause:
      "Branches are alternatives: whichever runs, an accumulator in flight is consumed once. A branch that leaves it would leave products without a wait.",
    example: "when(c, () => out.store(sum.wait()))",
    remedy:
      "give the accumulator on from the other branch: when(c, () => wgmma(sum, a, b), () => sum)",
  },
  TW2201: {
    title: "node not frozen",
    cause: "Nodes of the IR never change; a pass builds new ones.",
    example: 'const op = { kind: "block_sync", … }  // instead of Object.freeze({ … })',
    remedy: "build ops with the Builder, or freeze every record and list of the node",
  },
  TW2202: {
    title: "region without its yield",
    cause: "Every region ends with exactly one yield, and nothing stands after it.",
    example: "{ %1 = thread_index }",
    remedy: "end the region with a yield of its results",
  },
  TW2203: {
    title: "value defined twice",
    cause: "A value has one definition, and its id is unique within the kernel.",
    example: "%1 = thread_index; %1 = thread_index",
    remedy: "make a new value for each result",
  },
  TW2204: {
    title: "value used where it is not visible",
    cause:
      "A value is visible after its definition, in the same region and in regions inside it; what a loop or branch computes leaves it only as a result.",
    example: "when(c, () => { kept = x.load(); }); out.store(kept);",
    remedy: "return the value from its region and use the result",
  },
  TW2205: {
    title: "result of another type than inferred",
    cause: "The types of an operation's results follow from its operands and attributes.",
    example: "a pass that replaces an operand by one of another shape",
    remedy: "build the operation anew instead of changing its parts",
  },
  TW2206: {
    title: "accumulator never waited for",
    cause:
      "An in-flight accumulator is consumed exactly once: by the next wgmma, by a loop that carries it, or by a wait.",
    example: "wgmma(accumulator, a, b);  // the result is dropped",
    remedy: "wait for the result of the last wgmma",
  },
  TW2207: {
    title: "accumulator consumed twice",
    cause:
      "After a wgmma, a wait or a loop has taken an in-flight accumulator, its registers belong to the result.",
    example: "const next = wgmma(accumulator, a, b); accumulator.wait();",
    remedy: "go on with the result of the first operation",
  },
  TW2208: {
    title: "accumulator captured from outside",
    cause:
      "A body that may run several times, or not at all, cannot consume an in-flight accumulator from outside exactly once.",
    example: "loop(8, () => { accumulator.wait(); })",
    remedy: "carry the accumulator through the loop, or wait for it before the branch",
  },
  TW2209: {
    title: "operation inside warp code",
    cause: "Inside `warps` each warp runs on its own; the operation needs all four together.",
    example: "warps(() => { blockSync(); })",
    remedy: "move the operation out of the warp code",
  },
  TW2210: {
    title: "not all threads reach a collective operation",
    cause: "A block or cluster barrier waits for every program thread, and some are left out here.",
    example: "producer(() => { blockSync(); })",
    remedy: "move it where all threads pass, or use a barrier with arrivals",
  },
  TW2211: {
    title: "allocation in the wrong place",
    cause:
      "Memory is laid out at compile time: shared memory and barriers belong to the kernel or to a scope, global scratch and semaphores to the kernel.",
    example: "loop %0, %1, %2 { (%3) %4 = alloc {space = smem, dtype = f32, shape = [64]} yield }",
    remedy: "allocate before the loop or branch, or in a scope of its own",
  },
  TW2212: {
    title: "thread that does not get here",
    cause: "Inside code for some program threads only those can be selected again.",
    example: "producer(() => { consumer(body); })",
    remedy: "select the threads side by side instead of one inside the other",
  },
  TW2213: {
    title: "kernel with results",
    cause: "A kernel gives its results by writing outputs; its body yields nothing.",
    example: "kernel @k … { %0 = thread_index yield %0 }",
    remedy: "declare an output and store to it",
  },
  TW2214: {
    title: "two kernels of one name",
    cause: "Kernels of a module are found by name.",
    example: 'kernel({ name: "copy" }, …); kernel({ name: "copy" }, …)',
    remedy: "rename one of them",
  },
  TW2215: {
    title: "impossible grid",
    cause: "A grid has at most 16 axes with different names, and at least one block along each.",
    example: "grid: { i: 0 }",
    remedy: "give each axis a name of its own and a positive extent",
  },
  TW2216: {
    title: "impossible cluster",
    cause: "Clusters divide the grid evenly and have at most 16 blocks in all.",
    example: "grid: { i: 6 }, cluster: { i: 4 }",
    remedy: "choose cluster sizes that divide the extents, with a product of at most 16",
  },
  TW2217: {
    title: "impossible program threads",
    cause:
      "A block has 1 to 8 program threads with different names; each is 128 of its at most 1024 threads.",
    example: 'threads: ["worker", "worker"]',
    remedy: "declare fewer threads, each with a name of its own",
  },
  TW2218: {
    title: "impossible parameter",
    cause:
      "Parameters have different names and are those of the body: arrays are refs to global memory with one stride an axis, scalars are scalars.",
    example: "tensor(f32, [4, 4], { strides: [4] })",
    remedy: "declare each parameter once, with a type that fits its role",
  },
  TW2219: {
    title: "dimension declared differently",
    cause: "A named dimension means one number in a launch, with one promised divisor.",
    example: 'tensor(f32, [dim("n")]), tensor(f32, [dim("n", { multipleOf: 8 })])',
    remedy: "declare the dimension once and use it everywhere",
  },
  TW2220: {
    title: "input written",
    cause: "Inputs are only read; writing one would change the caller's array behind its back.",
    example: "kernel({ inputs: { x: tensor(f32, [8]) } … }, ({ x }) => x.store(0))",
    remedy: "declare the array under outputs, or under inouts to update it in place",
  },
  TW2221: {
    title: "private memory reached from a peer",
    cause:
      "Memory allocated in the code of some program threads belongs to each of them alone; other blocks cannot name it.",
    example:
      "load(() => scoped({ buffer: smem(f32, [4]) }, ({ buffer }) => buffer.peer(1).load()))",
    remedy: "allocate the memory under scratch, or in a scoped that all threads enter",
  },
  TW2222: {
    title: "tile taken while its own product may run",
    cause:
      "`wait({ pending: n })` leaves the newest n products of the thread running, so n of them must be younger than the last one of its accumulator, on every way that leads there.",
    example:
      "const first = wgmma(x, a, b); first.wait({ pending: 1 });  // nothing was started after it",
    remedy: "start the later products before the wait, or leave fewer of them running",
  },
  TW2223: {
    title: "memory accessed before the kernel before has ended",
    cause:
      "A kernel that calls `waitForPreviousKernel` starts while the kernel before it still runs (programmatic dependent launch). Until it has waited it must leave global memory alone, inputs and counters and messages as well, in every program thread and warp that comes there and on every way; and each block has to wait before it ends, since the kernel after it waits for this one alone.",
    example: "const row = x.load(); waitForPreviousKernel(); out.store(row)",
    remedy:
      "call waitForPreviousKernel() first, in the kernel's body or at the start of each thread's code; prefetch(…) may come before it",
  },
  TW2224: {
    title: "independent array that is no input",
    cause:
      "`waitForPreviousKernel({ independent: [name] })` names input arrays of the kernel that may be read before the wait.",
    example:
      'kernel({ outputs: { out: … } … }, () => waitForPreviousKernel({ independent: ["out"] }))',
    remedy: "name inputs that are arrays, as the kernel declares them",
  },
  TW2225: {
    title: "array that cannot be selected",
    cause:
      "`select_ref` selects among whole arrays that lie alike: parameters of the kernel in row-major order.",
    example: "%3 = select_ref %1, %2 index(%0)  // %1 is a window",
    remedy: "select among parameters without strides, and cut the window from what was selected",
  },
});
