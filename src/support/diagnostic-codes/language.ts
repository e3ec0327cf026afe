/**
 * Codes of the kernel language: TW1xxx.
 *
 * | codes           | about                                             |
 * |-----------------|---------------------------------------------------|
 * | TW1001 – TW1009 | traced values and JavaScript's own                |
 * | TW1010 – TW1019 | values, control flow and windows in a kernel      |
 * | TW1020 – TW1034 | a kernel's specification                          |
 */
import { registerCodes } from "./entry.ts";

export const languageCodes = registerCodes({
  TW1001: {
    title: "traced value used as a JavaScript value",
    cause:
      "A traced value stands for a number that exists only when the kernel runs; JavaScript asked for the number now.",
    example: "if (i > 3) { … }",
    remedy: "use the value's methods (`i.gt(3)`) and `when` for control flow in the kernel",
  },
  TW1002: {
    title: "outside a kernel's body",
    cause:
      "Functions and methods of the language record what a kernel does, so they work only while `kernel` runs its body.",
    example: "const z = zeros(f32, [64]); kernel({ … }, ({ out }) => { out.store(z); });",
    remedy: "move the call into the body of `kernel`",
  },
  TW1003: {
    title: "value of another kernel",
    cause: "A traced value belongs to the kernel in whose body it was made.",
    example: "let kept; kernel(a, ({ i }) => { kept = i; }); kernel(b, () => { kept.add(1); });",
    remedy: "compute the value again in this kernel, or pass it through memory",
  },
  TW1004: {
    title: "value leaked out of its region",
    cause:
      "What is made in the body of a loop, a branch or a thread's code exists only there: the body may run many times, or not at all.",
    example: "let last; loop(4, (k) => { last = x.at(k).load(); }); out.store(last);",
    remedy: "hand the value on as a carry of the loop or as the result of the branch",
  },
  TW1005: {
    title: "asynchronous body",
    cause:
      "A body is traced while it is called. What an asynchronous function does after its first `await`, and what a generator does, would come too late.",
    example: "kernel(spec, async ({ out }) => { … })",
    remedy: "use an ordinary function, and await what it needs before calling `kernel`",
  },
  TW1006: {
    title: "condition never used",
    cause:
      "A comparison was traced and nothing in the kernel depends on it. Most likely JavaScript's `if`, `&&`, `!` or `?:` was meant to; to them every object is true.",
    example: "if (i.lt(3)) { … }",
    remedy: "use `when(condition, …)` or `condition.select(a, b)`, or remove the comparison",
  },
  TW1007: {
    title: "not a value of the dtype",
    cause:
      "A plain value beside a traced one becomes a constant of the same dtype. Integers take whole numbers in range, 64-bit ones as BigInt where a number is not exact; bool takes true and false; floats take numbers in range.",
    example: "tile.add(0.5)   // a tile of i32",
    remedy: "write a value that the dtype has, or cast the other operand",
  },
  TW1008: {
    title: "argument of the wrong kind",
    cause: "A function of the language was given something that it cannot work with.",
    example: "tile.add(ref)",
    remedy: "give what the function takes",
  },
  TW1009: {
    title: "plain value without dtype",
    cause:
      "A plain JavaScript value takes its dtype from a traced value beside it. Here there is none.",
    example: "condition.select(1, 2)",
    remedy: "write `constant(dtype, value)`",
  },
  TW1010: {
    title: "shapes do not fit together",
    cause:
      "Tiles are aligned at their last axis; extents must be equal, or one of them 1 or missing.",
    example: "zeros(f32, [64, 32]).add(zeros(f32, [64]))",
    remedy:
      "give the smaller tile the missing axis with `expand`, or transpose or slice one of them",
  },
  TW1011: {
    title: "accumulator used twice",
    cause:
      "Tensor cores may still be writing an accumulator, so each object is used exactly once, by the next wgmma, as a carry, or by a wait.",
    example: "const next = wgmma(sum, a, b); sum.wait();",
    remedy: "go on with the accumulator that the first use returned",
  },
  TW1012: {
    title: "values of another form",
    cause:
      "What a loop's body returns has the form and the types of what it carries, and branches give the same as each other.",
    example: "loop({ to: 4, carry: { sum } }, (k, { sum }) => ({ total: sum }))",
    remedy: "return the same names, dtypes and shapes",
  },
  TW1013: {
    title: "result of one branch only",
    cause: "Where a condition is false, a `when` with one branch would have no result.",
    example: "when(condition, () => tile.add(1))",
    remedy: "give the second branch, or put braces around the first so that it returns nothing",
  },
  TW1014: {
    title: "loop that does not count up",
    cause: "A loop counts from its start up to its end by a positive step.",
    example: "loop({ to: 8, step: 0 }, (k) => { … })",
    remedy: "give a positive step; to count down, compute the index from one that counts up",
  },
  TW1016: {
    title: "index out of bounds",
    cause:
      "An index lies within its axis, and so does a window on shared memory. A window of several elements on global memory may begin before the array and reach beyond its end.",
    example: "x.at(-1)",
    remedy: "give a position within the axis",
  },
  TW1017: {
    title: "too many indices",
    cause: "`at` takes at most one index or slice for each axis.",
    example: "x.at(i, j)   // x has one axis",
    remedy: "leave out the indices that have no axis",
  },
  TW1018: {
    title: "window of the wrong rank",
    cause: "A window with axes is loaded as a tile; only one without axes is a scalar.",
    example: "x.at(slice(0, 4)).loadScalar()",
    remedy: "use `load`, or give an index for each axis",
  },
  TW1019: {
    title: "wait that leaves an impossible number of products",
    cause:
      "`waitPending(n)` leaves n of the thread's wgmma running and gives an accumulator, so n is at least 1; `wait({ pending: n })` gives the tile and may leave none.",
    example: "sum.waitPending(0)",
    remedy: "give a whole number, for waitPending a positive one",
  },
  TW1020: {
    title: "not a name",
    cause:
      "Names of kernels, arguments, axes, threads and dimensions are identifiers: letters, digits and _, not starting with a digit.",
    example: 'kernel({ name: "my kernel" }, …)',
    remedy: "choose an identifier",
  },
  TW1021: {
    title: "name used twice",
    cause:
      "Grid axes, threads, inputs, outputs, inouts and scratch are properties of one object, the argument of the body.",
    example: "kernel({ grid: { x: 4 }, inputs: { x: tensor(f32, [n]) } }, …)",
    remedy: "rename one of them",
  },
  TW1022: {
    title: "unknown name",
    cause: "The body takes a name that the kernel's specification does not have.",
    example: "kernel({ inputs: { x } }, ({ y }) => { … })",
    remedy: "declare it in the specification, or correct the spelling",
  },
  TW1023: {
    title: "not a number of blocks",
    cause: "The grid has a positive whole number of blocks along each axis.",
    example: "kernel({ grid: { i: n / 64 } }, …)   // n = 100",
    remedy: "use `cdiv(size, block)`, which rounds up",
  },
  TW1024: {
    title: "impossible cluster",
    cause:
      "A cluster has a positive whole number of blocks along each of its axes; along an axis of the grid it divides the grid's blocks.",
    example: "kernel({ grid: { i: 7 }, cluster: { i: 2 } }, …)",
    remedy:
      "give divisors of the extents of the grid, or name an axis of the cluster alone, along which each place of the grid has so many blocks",
  },
  TW1025: {
    title: "impossible number of program threads",
    cause:
      "A block has 1 to 8 program threads, each of them 128 threads, or 32 for each of its `warps`, and 1024 threads in all.",
    example: "kernel({ threads: [] }, …)",
    remedy: "name one to eight threads, or leave `threads` out for one",
  },
  TW1026: {
    title: "thread's code within another thread's",
    cause:
      "Code inside `load(() => …)` runs on thread `load` alone, so no other thread gets there.",
    example: "load(() => { compute(() => { … }); })",
    remedy: "write the threads' code one after the other",
  },
  TW1027: {
    title: "not a size",
    cause:
      "Sizes, and the numbers they are divided by or multiples of, are positive whole numbers.",
    example: "cdiv(n, 0)",
    remedy: "give a positive whole number",
  },
  TW1028: {
    title: "dimension with two promises",
    cause: "A named dimension is one number, and promises one divisor wherever it stands.",
    example: 'tensor(f32, [dim("n"), dim("n", { multipleOf: 8 })])',
    remedy: "make the dimension once and use that object everywhere",
  },
  TW1029: {
    title: "not a shape",
    cause: "A shape is a list of positive whole numbers and named dimensions.",
    example: "tensor(f32, [0])",
    remedy: "give each extent as a positive whole number or a size made by `dim` or `cdiv`",
  },
  TW1030: {
    title: "strides that do not fit the shape",
    cause: "Strides are counted in elements, one for each axis of the array.",
    example: "tensor(f32, [n, 64], { strides: [64] })",
    remedy: "give one positive stride for each axis",
  },
  TW1031: {
    title: "description in the wrong place",
    cause:
      "Inputs are arrays and scalars, outputs and inouts are arrays, scratch is memory and what threads wait for; `scoped` and `union` take what lives in shared or tensor memory, a union in one of them.",
    example: "kernel({ outputs: { total: scalar(f32) } }, …)",
    remedy: "use one of the descriptions that belong there",
  },
  TW1032: {
    title: "atomic update of a window by a single value",
    cause:
      "An atomic update gives the old elements in the form of the value: a scalar for a scalar, a tile for a tile.",
    example: "histogram.at(slice(0, 64)).atomicAdd(1)",
    remedy: "give a tile of the window's shape, such as `full(dtype, shape, value)`",
  },
  TW1033: {
    title: "unknown option",
    cause:
      "The function takes no option of this name. Ignoring it would leave the default in force without a word.",
    example: "barrier({ arivals: 3 })",
    remedy: "use one of the names that the message lists",
  },
  TW1034: {
    title: "part of a specification of another kind",
    cause:
      "grid, cluster, inputs, outputs, inouts and scratch are objects with a name for each thing, threads is a list of names. Anything else would name nothing, and the kernel would run without it.",
    example: "kernel({ name: 'k', grid: () => [n] }, …)",
    remedy: "write an object such as { i: 8 }",
  },
  TW1035: {
    title: "tracing ran out of stack",
    cause:
      "Each loop, branch and thread's code is traced inside the one around it. The body nests them too deeply, or calls itself without end.",
    example: "const nest = (n) => { loop(2, () => nest(n + 1)); };",
    remedy: "let the recursion end, or use one loop in the kernel in place of many nested ones",
  },
  TW1036: {
    title: "slice of shared memory with an end of its own",
    cause:
      "Windows on shared memory may not overhang, so there is nothing that an end could leave out of bounds.",
    example: "buffer.at(slice(0, 64, { end: count }))",
    remedy: "leave elements out with a mask: load({ where }) and store(value, { where })",
  },
  TW1037: {
    title: "number of warps that no program thread has",
    cause:
      "The warps of a program thread hold its tiles together, and layouts deal elements out in powers of two. A block has at most 32 warps.",
    example: "kernel({ name: 'rows', warps: 6 }, …)",
    remedy: "give 1, 2, 4, 8, 16 or 32 warps",
  },
  TW1038: {
    title: "combining function that gives other tiles",
    cause:
      "reduceWith and scanWith call their function again on what it gave before, so that it gives as many tiles as it takes, of the same formats and shapes.",
    example: "reduceWith([x, at], ([a], [b]) => [a.max(b)], { axis: 0, identity: [0, 0] })",
    remedy: "give a tile for each that the function takes, cast to its format",
  },
  TW1039: {
    title: "axes of vmap that do not fit the kernel",
    cause:
      "vmap is told for each argument by its name where its axis of items lies, in the shape with that axis. At least one argument has such an axis, or all items would be the same.",
    example: "vmap(kernel, { y: 0 })  // the kernel has x and out",
    remedy: "name arguments of the kernel, with an axis from 0 to their number of axes",
  },
  TW1040: {
    title: "meaning of inline PTX that does more than compute",
    cause:
      "The meaning says what the results are on the simulator; elsewhere the code is run in its place. A load, a store or a barrier in it would happen on one and not on the other.",
    example: "inlinePtx({ meaning: (x) => [x.add(table.load())], … })",
    remedy: "load before and give the tile as an operand",
  },
  TW1041: {
    title: "early end from elsewhere",
    cause:
      "`breakIf` and `continueIf` end a round of their own loop, and `returnIf` the kernel's body. From within a branch, another loop, or the code of some threads or warps, others would still be on their way through that.",
    example: "loop(n, (i, { breakIf }) => { when(c, () => { breakIf(d); }); })",
    remedy: "call it in the body that it ends, with a condition that says all: c.and(d)",
  },
  TW1042: {
    title: "early return of some threads of a block",
    cause:
      "`returnIf` ends the kernel for a whole block. Where program threads differ, those that go on would wait for the others at the next `blockSync`.",
    example: "returnIf(threadIndex().eq(1))",
    remedy: "put the code behind it in when, or in the code of the threads that run it",
  },
  TW1043: {
    title: "no choice for the target",
    cause:
      "A value that differs by target has none for the one that the kernel is traced for: sm_90a when it is defined, and each other that it is compiled for.",
    example: "byTarget({ sm_100a: 4 })",
    remedy: "add the target, or default: … for all others",
  },
  TW1044: {
    title: "memory order that an access cannot have",
    cause:
      "A load may be weak, relaxed or acquire, a store weak, relaxed or release, an atomic update relaxed, acquire, release or acq_rel. A weak access has no scope, and one with an order leaves the caches alone.",
    example: 'flag.load({ memoryOrder: "release" })',
    remedy: "release with a store or an atomic update, and acquire with a load or an update",
  },
  TW1045: {
    title: "JavaScript condition on a traced value",
    cause:
      "A traced value is an object while the kernel is traced, and to JavaScript every object is true. An `if` would always record its branch, a `while` would never end.",
    example: "if (i.lt(3)) { out.store(tile); }",
    remedy: "write `when`, `select`, `loop` or `whileLoop`, which the kernel decides by",
  },
});
