/** Codes of performance notes: TW75xx. Such a kernel is right; something in it costs speed. */
import { registerCodes } from "./entry.ts";

export const performanceCodes = registerCodes({
  TW7501: {
    title: "product without tensor cores",
    cause:
      "The formats of a dot are ones that tensor cores multiply, but its shape is not. Threads multiply and add one element at a time.",
    example: "dot(a, b)  // bf16 [4, 64] by [64, 16]",
    remedy:
      "make rows a multiple of 16, columns of 8 and the depth of 256 bits: 16 of f16 and FP8, 32 of i8 and i4",
  },
  TW7502: {
    title: "narrow access to global memory",
    cause:
      "A thread moves up to 16 bytes at a time where rows are known to begin at multiples of 16 bytes and neighbours lie in one thread.",
    example: 'x.at(rows, columns).load()  // x is [dim("m"), dim("n")]',
    remedy: 'say what rows are a multiple of: dim("n", { multipleOf: 8 })',
  },
  TW7503: {
    title: "tile that threads keep copies of",
    cause: "Every element of the tile lies in several threads, and each copy takes registers.",
    example: 'tile.layoutCast("flat(R0 R1 R2 R3 R4 R5 R6)")',
    remedy: "take back a layoutCast, or do less with the tile at once",
  },
  TW7504: {
    title: "conflicts of shared memory's banks",
    cause:
      "Threads of a warp access different words of one bank together, and are served one after the other.",
    example: 'smem(f32, [32, 32], { layout: "shared()" })  // read by columns',
    remedy: "leave the layout of the buffer to the compiler, or state one with a swizzle",
  },
  TW7505: {
    title: "registers spilled to memory",
    cause: "What is alive at once takes more registers than a thread has.",
    example: "accumulator(f32, [128, 256])  // and a second tile beside it",
    remedy: "use smaller tiles, or let more program threads share the work",
  },
  TW7506: {
    title: "products of tensor cores one after the other",
    cause:
      "The assembler waits after each wgmma, because it cannot see that nobody touches the registers in between, or has too few of them.",
    example: "wgmma(sum, a, b)  // in a thread with too few registers",
    remedy: "give the thread more registers with setRegisters, or use smaller tiles",
  },
  TW7507: {
    title: "setRegisters without effect",
    cause: "The assembler ignored the kernel's setmaxnreg.",
    example: "setRegisters(240)",
    remedy: "give every program thread of the block a setRegisters, first thing in its body",
  },
  TW7508: {
    title: "loss of speed that the assembler reports",
    cause: "The assembler says that something in the kernel is slower than it could be.",
    example: "(C7…) Potential Performance Loss: …",
    remedy: "see the assembler's own words",
  },
  TW7509: {
    title: "loop without copies ahead",
    cause:
      "The compiler copies ahead what a loop of products loads: in a kernel of one program thread, from inputs whose rows begin at multiples of 16 bytes, at places that follow from the loop's index alone, where the loop does nothing else that others see.",
    example:
      "loop({ to: steps, depth: 3, carry }, (step, sum) => { …; y.store(…); return dot(…); })",
    remedy: "take `depth` away, or write the steps with `pipeline`, which copies any window",
  },
  TW7511: {
    title: "left factor that a loop holds in registers",
    cause:
      "A tile that is the left factor of a wgmma in every round of a loop is made before it. The assemblers of CUDA 13.0 and of driver 580 have been seen to overwrite such registers within the loop, so they are copied for the product in every round, in a way that no assembler takes away.",
    example: "const q = x.load(); loop(steps, (step) => wgmma(sum, q, k.at(step)) …)",
    remedy: "store the tile in shared memory before the loop, and give wgmma the buffer",
  },
  TW7512: {
    title: "copy by threads instead of TMA",
    cause:
      "A copyAsync is made by TMA where its window is known to be one that it can address: it writes no window that may begin before the array, and rows and starts are multiples of 16 bytes. Otherwise all threads load and store.",
    example: "copyAsync(tile, out.at(slice(i.sub(1).mul(64), 64)))",
    remedy: "let the start never be negative, for instance by .maximum(0), or say multipleOf",
  },
  TW7513: {
    title: "simulated kernel that would not compile",
    cause:
      "The simulator knows no layouts and no registers, and runs kernels that the compiler refuses for the target: layouts are stated that cannot all hold, or a tile does not fit in registers. The note quotes the refusal; the results of the simulation are right.",
    example: "x.at(slice(0, 512), slice(0, 512)).load()  // on the simulator",
    remedy: "change what the note names before the kernel is compiled",
  },
  TW7514: {
    title: "layout that was asked for",
    cause:
      "`printLayout` has the compiler tell how a tile lies over lanes and registers where it stands.",
    example: 'printLayout(total, "total")',
    remedy:
      "state another layout with layoutCast, convert to one with convertLayout, or take the call out",
  },
  TW7516: {
    title: "product whose sums are not in tensor memory",
    cause:
      "The target has tensor cores that read operands from shared memory and add up in tensor memory. Single warps that multiply fragments in registers reach a part of their rate.",
    example: "dot(a, b)  // on sm_100a",
    remedy:
      "add up in a loop that loads a block of each factor in each step, or multiply with tcgen05Mma",
  },
  TW7517: {
    title: "product with scales that is made of bf16",
    cause:
      "Tensor cores of Blackwell multiply narrow floats and their scales as they are. Converted to bf16 first, they take several times as long, and registers besides.",
    example: "scaledDot([a, aScale], b)  // on sm_120a, where b has no scales",
    remedy:
      "give both operands scales of one format: FP8, FP6 or FP4 with f8e8m0fnu for each 32, or FP4 with f8e4m3fn for each 16; on sm_100a multiply with tcgen05Mma",
  },
  TW7515: {
    title: "launch that takes over three times its roofline",
    cause:
      "What the ops of a launch need of a GPU, each operand and result once and products at the rate of their format, is less than a third of what its kernel is estimated to take, from its tile IR.",
    example: "planNotes(planCosts(plan))  // of a scatter into few rows",
    remedy:
      "write what the program's line computes in another form, such as a product, a reduction or a gather of whole rows; `tilewright run FILE.mlir --plan --explain` says what bounds it",
  },
});
