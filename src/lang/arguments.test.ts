import { testMistakes, trace, wrong } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { f32 } from "../formats/dtype.ts";
import {
  accumulator,
  tensor,
  barrier,
  concatenate,
  debugBreak,
  debugPrint,
  loop,
  prefetch,
  prefetchMaps,
  slice,
  switchCase,
  union,
  wgmma,
  when,
  whileLoop,
  zeros,
} from "./index.ts";
import type { Scalar, Tile } from "./index.ts";

const kinds: readonly Mistake[] = [
  {
    name: "window as an operand",
    code: "TW1008",
    make: () => trace(({ x, row }) => row.add(wrong(x))), // <- here
    message: "an operand of add must be a tile, a scalar or a number",
    found: "ref<gmem, f32, [8, 64]>",
    remedy: "load the window first",
  },
  {
    name: "accumulator as an operand",
    code: "TW1008",
    make: () =>
      trace(() => {
        const sum = accumulator(f32, [64, 64]);
        return sum.wait().add(wrong(sum)); // <- here
      }),
    remedy: "wait for the accumulator first",
  },
  {
    name: "missing operand",
    code: "TW1008",
    make: () => trace(({ row }) => row.mul(wrong(undefined))), // <- here
    found: "undefined",
  },
  {
    name: "text stored",
    code: "TW1008",
    make: () =>
      trace(({ shared }) => {
        shared.store(wrong("1")); // <- here
      }),
    found: 'the text "1"',
  },
  {
    name: "text as fill",
    code: "TW1008",
    make: () => trace(({ x }) => x.load({ fill: wrong("-inf") })), // <- here
    message: "fill of load must be a number, a scalar or a tile of f32",
    found: 'the text "-inf"',
  },
  {
    name: "number for a shape",
    code: "TW1008",
    make: () => trace(() => zeros(f32, wrong(64))), // <- here
    message: "the shape of zeros must be a list of numbers",
  },
  {
    name: "start of a tile's slice that the kernel computes",
    code: "TW1008",
    make: () => trace(({ i, row }) => row.slice([wrong(i)], [8])), // <- here
    message: "element 0 of the starts of slice must be a number",
    found: "i32",
    remedy: "for a window that moves, load it from memory: x.at(slice(start, size)).load()",
  },
  {
    name: "name of a format",
    code: "TW0007",
    make: () => trace(() => zeros(wrong("f32"), [64])), // <- here
    remedy: "import the format and give it without quotes: f32",
  },
  {
    name: "list for debugBreak",
    code: "TW1008",
    make: () => trace(({ row }) => debugBreak(wrong([row]))), // <- here
    message: "what debugBreak takes must be an object of values by name",
  },
  {
    name: "axis that expand cannot insert",
    code: "TW1008",
    make: () => trace(({ row }) => row.expand({ axis: 2 })), // <- here
    expected: "an axis from -2 to 1",
  },
  {
    name: "reshape that infers two extents",
    code: "TW1008",
    make: () => trace(({ matrix }) => matrix.reshape([-1, -1])), // <- here
    expected: "one -1 at most, beside extents that divide 512 elements",
  },
  {
    name: "reshape that infers an extent of no whole number",
    code: "TW1008",
    make: () => trace(({ matrix }) => matrix.reshape([7, -1])), // <- here
    expected: "one -1 at most, beside extents that divide 512 elements",
  },
  {
    name: "function missing",
    code: "TW1008",
    make: () =>
      trace(() => {
        loop(4, wrong(undefined)); // <- here
      }),
    message: "the body of loop must be a function",
  },
  {
    name: "loop without an end",
    code: "TW1008",
    make: () =>
      trace(() => {
        loop(wrong("4"), () => undefined); // <- here
      }),
  },
  {
    name: "plain condition",
    code: "TW1008",
    make: () =>
      trace(() => {
        when(wrong(true), () => undefined); // <- here
      }),
    message: "the condition of when must be a bool scalar",
    remedy: "with JavaScript's own if",
  },
  {
    name: "tile as a condition",
    code: "TW1008",
    make: () =>
      trace(({ row }) => {
        when(wrong(row.lt(0)), () => undefined); // <- here
      }),
    found: "tile<bool, [64]>",
    remedy: "all() or any()",
  },
  {
    name: "while without a condition",
    code: "TW1008",
    make: () =>
      trace(({ i }) => {
        const condition = wrong(() => undefined);
        const body = (k: Scalar<"i32">) => k;
        whileLoop(i, condition, body); // <- here
      }),
    message: "the condition of whileLoop must be a bool scalar",
  },
  {
    name: "no cases",
    code: "TW1008",
    make: () =>
      trace(({ i }) => {
        switchCase(i, []); // <- here
      }),
  },
  {
    name: "ref as a carry",
    code: "TW1008",
    make: () => trace(({ x }) => loop({ to: 4, carry: wrong(x) as Tile }, (_, t) => t)), // <- here
    message: "carry must be a tile, a scalar or an accumulator",
  },
  {
    name: "number among tiles",
    code: "TW1008",
    make: () => trace(({ row }) => concatenate([row, wrong(1)], { axis: 0 })), // <- here
  },
  {
    name: "payload that is no tile",
    code: "TW1008",
    make: () => trace(({ row }) => row.sortWith([wrong(1) as Tile], { axis: 0 })), // <- here
  },
  {
    name: "tile for the initial sums that is none",
    code: "TW1008",
    make: () => trace(() => accumulator(f32, [64, 64], wrong(0))), // <- here
  },
  {
    name: "wgmma without an accumulator",
    code: "TW1008",
    make: () => trace(({ row, shared }) => wgmma(wrong(row), shared, shared)), // <- here
    expected: "an accumulator",
  },
  {
    name: "wgmma that adds by a number",
    code: "TW1008",
    make: () =>
      trace(({ shared }) => wgmma(accumulator(f32, [64, 64]), shared, shared, { adds: wrong(1) })), // <- here
    expected: "a bool scalar",
  },
  {
    name: "prefetch of a tile",
    code: "TW1008",
    make: () =>
      trace(({ row }) => {
        prefetch(wrong(row)); // <- here
      }),
  },
  {
    name: "prefetch of a tile's maps",
    code: "TW1008",
    make: () =>
      trace(({ row }) => {
        prefetchMaps(wrong(row)); // <- here
      }),
  },
  {
    name: "plain value printed",
    code: "TW1008",
    make: () =>
      trace(() => {
        debugPrint("{}", wrong(1)); // <- here
      }),
    expected: "a tile or a scalar",
  },
  {
    name: "start of a slice that is no index",
    code: "TW1008",
    make: () => slice(wrong("0"), 4), // <- here
  },
  {
    name: "empty slice",
    code: "TW1008",
    make: () => slice(0, 0), // <- here
    expected: "a positive whole number",
  },
  {
    name: "index of another kind",
    code: "TW1008",
    make: () => trace(({ x }) => x.at(wrong([0]))), // <- here
  },
  {
    name: "dtype by its name",
    code: "TW1008",
    make: () => tensor(wrong("f32"), [4]), // <- here
  },
  {
    name: "arrivals of a barrier",
    code: "TW1008",
    make: () => barrier({ arrivals: 0 }), // <- here
    message: "arrivals of a barrier must be a positive whole number",
  },
  {
    name: "empty union",
    code: "TW1008",
    make: () => union({}), // <- here
  },
  {
    name: "choice between plain values",
    code: "TW1009",
    make: () => trace(({ i }) => i.eq(0).select(1, wrong(2) as Scalar)), // <- here
    message: "select of plain values alone has no dtype",
    found: "1 and 2",
  },
  {
    name: "plain number as a carry",
    code: "TW1009",
    make: () => trace(() => loop({ to: 4, carry: { n: wrong(0) as Scalar } }, (_, c) => c)), // <- here
    message: "carry.n is a plain JavaScript value and has no dtype",
    remedy: "write constant(dtype, 0)",
  },
];

testMistakes("arguments of the wrong kind", kinds);
