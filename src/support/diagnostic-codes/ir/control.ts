/** Codes of loops, branches and debugging operations: TW209x and TW210x. */
import { registerCodes } from "../entry.ts";

export const controlCodes = registerCodes({
  TW2090: {
    title: "loop bounds of another type",
    cause: "A loop counts in i32 or i64, and its start, end and step have that one type.",
    example: "loop(length, body)  // length is f32",
    remedy: "cast the bounds to i32",
  },
  TW2092: {
    title: "carry of another type",
    cause: "A value carried around a loop has the same type before, during and after it.",
    example: "loop({ to: 8, carry: zeros(f32, [64]) }, (i, sum) => sum.cast(bf16))",
    remedy: "cast what the body returns, or begin with a value of that type",
  },
  TW2093: {
    title: "another number of carries",
    cause: "The body of a loop gives back one value for each that it carries.",
    example: "loop({ to: 8, carry: [a, b] }, (i, [a, b]) => [a])",
    remedy: "return as many values as the loop begins with",
  },
  TW2094: {
    title: "while condition",
    cause: "The condition of a while loop gives one bool scalar.",
    example: "whileLoop(x, (x) => x.sub(1), body)",
    remedy: "return a comparison of scalars",
  },
  TW2095: {
    title: "branches of different types",
    cause: "Whichever branch runs, the results have one type.",
    example: "when(c, () => a, () => a.cast(bf16))",
    remedy: "cast the results to one type, and return as many from each branch",
  },
  TW2097: {
    title: "switch without cases",
    cause: "A switch runs one of its cases, so there is at least one.",
    example: "switchCase(i, [])",
    remedy: "give at least one case",
  },
  TW2098: {
    title: "memory leaking out of its region",
    cause:
      "Refs, barriers and semaphores name memory where they are visible; they cannot be carried or returned, and what a scope allocates is gone when it ends.",
    example: "const leaked = scoped({ buffer: smem(f32, [64]) }, ({ buffer }) => buffer)",
    remedy: "load the contents and return them, or allocate outside",
  },
  TW2099: {
    title: "no such program thread",
    cause: "The body runs on some of the program threads that the kernel declares.",
    example: "on_threads {threads = [2]} { yield }  // two threads: 0 and 1",
    remedy: "name threads that the kernel declares, each once",
  },
  TW2100: {
    title: "results of a body that not everyone runs",
    cause: "What some program threads or warps compute on their own is no value of the others.",
    example: "on_threads {threads = [0]} { yield %1 }",
    remedy: "hand the value over through shared memory and a barrier",
  },
  TW2101: {
    title: "format and values differ in number",
    cause: "Each {} of the format prints one value.",
    example: 'debugPrint("{} {}", x)',
    remedy: "write one {} for each value",
  },
  TW2102: {
    title: "names and values differ in number",
    cause: "Each value shown in the debugger has a name.",
    example: 'debug_break %0, %1 {names = ["x"]}',
    remedy: "give one name for each value",
  },
  TW2103: {
    title: "a profile mark of another form",
    cause:
      "Marks that write are made by the compiler: their ring is an array of 16 byte slots, and those of scopes have a number.",
    example: 'profile_mark ring(%0) {edge = begin, name = "load"}',
    remedy: 'write profile("name", () => …) in a kernel',
  },
});
