/** Options that no function takes are refused, with the name that was probably meant. */
import { testMistakes, trace, wrong } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { bf16, f32 } from "../formats/dtype.ts";
import {
  tensor,
  barrier,
  copyAsync,
  dim,
  dot,
  kernel,
  loop,
  semaphore,
  smem,
  waitGroup,
  zeros,
} from "./index.ts";
import type { Barrier, Semaphore } from "./index.ts";

/** A kernel whose body has a barrier and a semaphore. */
function synchronised(body: (things: { ready: Barrier; turn: Semaphore }) => void): unknown {
  return kernel({ name: "k", scratch: { ready: barrier(), turn: semaphore() } }, body);
}

const options: readonly Mistake[] = [
  {
    name: "of barrier",
    code: "TW1033",
    make: () => barrier(wrong({ arivals: 3 })), // <- here
    message: "unknown option arivals of barrier; did you mean arrivals?",
    expected: "{ arrivals, count }",
    found: "arivals",
    remedy: "write arrivals",
  },
  {
    name: "of nothing alike",
    code: "TW1033",
    make: () => barrier(wrong({ zzz: 3 })), // <- here
    message: "unknown option zzz of barrier",
    remedy: "use one of the names that the message lists",
  },
  {
    name: "of kernel",
    code: "TW1033",
    make: () => kernel(wrong({ name: "k", inptus: {} }), () => undefined), // <- here
    message: "unknown option inptus of kernel; did you mean inputs?",
  },
  {
    name: "of tensor",
    code: "TW1033",
    make: () => tensor(f32, [4], wrong({ stride: [1] })), // <- here
    message: "unknown option stride of tensor, which is called strides",
  },
  {
    name: "of an axis that stands by itself",
    code: "TW1033",
    make: () => trace(({ matrix }) => matrix.sum(wrong(1))), // <- here
    message: "the axis of sum is an option",
    remedy: "write { axis: 1 }",
  },
  {
    name: "of a reduction, by its earlier name",
    code: "TW1033",
    make: () => trace(({ matrix }) => matrix.sum(wrong({ axis: 1, keep: true }))), // <- here
    message: "unknown option keep of sum, which is called keepDims",
    remedy: "write keepDims",
  },
  {
    name: "of smem",
    code: "TW1033",
    make: () => smem(f32, [4], wrong({ swizzle: 128 })), // <- here
    message: "unknown option swizzle of smem",
  },
  {
    name: "of dim",
    code: "TW1033",
    make: () => dim("n", wrong({ multipleof: 8 })), // <- here
    message: "unknown option multipleof of dim; did you mean multipleOf?",
  },
  {
    name: "abbreviated",
    code: "TW1033",
    make: () =>
      trace(({ matrix }) => {
        dot(matrix, matrix.transpose(), wrong({ accum: zeros(f32, [8, 8]) })); // <- here
      }),
    message: "unknown option accum of dot; did you mean accumulator?",
  },
  {
    name: "that are a tile",
    code: "TW1033",
    make: () =>
      trace(({ matrix }) => {
        dot(matrix, matrix.transpose(), wrong(zeros(f32, [8, 8]))); // <- here
      }),
    message: "the options of dot are not an object with names",
    expected: "{ accumulator, precision, accumulation, dtype }",
    found: "f32 of shape [8, 8]",
  },
  {
    name: "of loop",
    code: "TW1033",
    make: () =>
      trace(() => {
        loop(wrong({ too: 3 }), () => undefined); // <- here
      }),
    message: "unknown option too of loop; did you mean to?",
  },
  {
    name: "of a function of numbers",
    code: "TW1033",
    make: () => trace(({ matrix }) => matrix.exp(wrong({ aproximate: true }))), // <- here
    message: "unknown option aproximate of exp; did you mean approximate?",
  },
  {
    name: "of load",
    code: "TW1033",
    make: () => trace(({ x }) => x.load(wrong({ fil: 9 }))), // <- here
    message: "unknown option fil of load; did you mean fill?",
  },
  {
    name: "of copyAsync",
    code: "TW1033",
    make: () =>
      trace(({ x, shared }) => {
        copyAsync(x, shared, wrong({ barier: 1 })); // <- here
      }),
    message: "unknown option barier of copyAsync; did you mean barrier?",
  },
  {
    name: "of waitGroup",
    code: "TW1033",
    make: () =>
      trace(() => {
        waitGroup(0, wrong({ reed: true })); // <- here
      }),
    message: "unknown option reed of waitGroup; did you mean read?",
  },
  {
    name: "of cast",
    code: "TW1033",
    make: () => trace(({ row }) => row.cast(bf16, wrong({ overflows: "nan" }))), // <- here
    message: "unknown option overflows of cast; did you mean overflow?",
  },
  {
    name: "of a reduction",
    code: "TW1033",
    make: () => trace(({ matrix }) => matrix.max(wrong({ axis: 1, keepdims: true }))), // <- here
    message: "unknown option keepdims of max; did you mean keepDims?",
  },
  {
    name: "of a scan",
    code: "TW1033",
    make: () => trace(({ row }) => row.cumsum(wrong({ axis: 0, reversed: true }))), // <- here
    message: "unknown option reversed of cumsum; did you mean reverse?",
  },
  {
    name: "of sort",
    code: "TW1033",
    make: () => trace(({ row }) => row.sort(wrong({ axis: 0, desc: true }))), // <- here
    message: "unknown option desc of sort; did you mean descending?",
  },
  {
    name: "of arrive",
    code: "TW1033",
    make: () =>
      synchronised(({ ready }) => {
        ready.arrive(wrong({ rank: 1 })); // <- here
      }),
    expected: "{ peer }",
  },
  {
    name: "of a barrier's wait",
    code: "TW1033",
    make: () =>
      synchronised(({ ready }) => {
        ready.wait(wrong({ pairty: 1 })); // <- here
      }),
    message: "did you mean parity?",
  },
  {
    name: "of a semaphore",
    code: "TW1033",
    make: () => semaphore([4], wrong({ restore: true })), // <- here
    message: "did you mean restored?",
  },
  {
    name: "of a semaphore's wait",
    code: "TW1033",
    make: () =>
      synchronised(({ turn }) => {
        turn.wait(1, wrong({ decrements: true })); // <- here
      }),
    message: "did you mean decrement?",
  },
];

testMistakes("unknown options", options);
