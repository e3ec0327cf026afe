import { expect, test } from "vitest";
import { bodyText, testMistakes, trace, wrong } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { f32 } from "../formats/dtype.ts";
import { constant, kernel, loop, scoped, smem, when, zeros } from "./index.ts";
import type { Ref, Scalar } from "./index.ts";

const misuse: readonly Mistake[] = [
  {
    name: "comparison by <",
    code: "TW1001",
    make: () => trace(({ i }) => (wrong(i) as number) < 3), // <- here
    message: "i32 was used as a JavaScript value, by an arithmetic operator or a comparison",
    notes: ["the value is made here"],
  },
  {
    name: "addition by +",
    code: "TW1001",
    make: () => trace(({ row }) => (wrong(row) as number) + 1), // <- here
    message: "tile<f32, [64]> was used as a JavaScript value, by an operator such as +",
  },
  {
    name: "template string",
    code: "TW1001",
    make: () => trace(({ x }) => `${wrong(x) as string}`), // <- here
    message: "a template string or an index in []",
  },
  {
    name: "element of an array",
    code: "TW1001",
    make: () => trace(({ i }) => [1, 2, 3][wrong(i) as number]), // <- here
  },
  {
    name: "JSON",
    code: "TW1001",
    make: () => trace(({ row }) => JSON.stringify({ row })), // <- here
    message: "by JSON.stringify",
  },
  {
    name: "function outside a kernel",
    code: "TW1002",
    make: () => zeros(f32, [64]), // <- here
    message: "zeros was used outside a kernel's body",
  },
  {
    name: "control flow outside a kernel",
    code: "TW1002",
    make: () => {
      loop(4, () => undefined); // <- here
    },
    message: "loop was used outside a kernel's body",
  },
  {
    name: "value used after its kernel",
    code: "TW1002",
    make: () => {
      let kept: Scalar<"i32"> | undefined;
      trace(({ i }) => {
        kept = i;
      });
      return kept?.add(1); // <- here
    },
  },
  {
    name: "value of another kernel",
    code: "TW1003",
    make: () => {
      let kept: Scalar<"i32"> | undefined;
      trace(({ i }) => {
        kept = i;
      });
      return kernel({ name: "other" }, () => kept?.add(1)); // <- here
    },
    message: "i32 belongs to kernel traced, not to kernel other",
    notes: ["the value is made here"],
  },
  {
    name: "value of a kernel of the same name",
    code: "TW1003",
    make: () => {
      let kept: Scalar<"i32"> | undefined;
      trace(({ i }) => {
        kept = i;
      });
      return trace(() => kept?.add(1)); // <- here
    },
    message: "i32 belongs to another trace of kernel traced",
  },
  {
    name: "thread of another kernel",
    code: "TW1003",
    make: () =>
      kernel({ name: "outer", threads: ["a", "b"] }, ({ a }) => {
        kernel({ name: "inner" }, () => {
          a(() => undefined); // <- here
        });
      }),
    message: "thread a belongs to kernel outer, not to kernel inner",
  },
  {
    name: "tile leaked out of a loop",
    code: "TW1004",
    make: () =>
      trace(({ x, shared }) => {
        let last = zeros(f32, [64]);
        loop(4, (k) => {
          last = x.at(k).load();
        });
        shared.at(0).store(last); // <- here
      }),
    message: "tile<f32, [64]> was used outside the body of loop, in which it was made",
    notes: ["the value is made here"],
  },
  {
    name: "value shared between threads",
    code: "TW1004",
    make: () =>
      kernel({ name: "threads", threads: ["a", "b"] }, ({ a, b }) => {
        let kept = constant(f32, 0);
        a(() => {
          kept = constant(f32, 1);
        });
        b(() => {
          kept.add(1); // <- here
        });
      }),
    message: "outside the code of thread a",
  },
  {
    name: "scoped buffer used afterwards",
    code: "TW1004",
    make: () =>
      trace(() => {
        let kept: Ref<"f32"> | undefined;
        scoped({ buffer: smem(f32, [8]) }, ({ buffer }) => {
          kept = buffer;
        });
        kept?.store(0); // <- here
      }),
  },
  {
    name: "asynchronous kernel",
    code: "TW1005",
    make: () => kernel({ name: "later" }, async () => {}), // <- here
    message: "the body of kernel later is an asynchronous function",
  },
  {
    name: "asynchronous loop",
    code: "TW1005",
    make: () =>
      trace(() => {
        const body = wrong(async () => {});
        loop(4, body); // <- here
      }),
    message: "the body of loop is an asynchronous function",
  },
  {
    name: "generator",
    code: "TW1005",
    make: () =>
      trace(({ i }) => {
        const body = wrong(function* () {});
        when(i.eq(0), body); // <- here
      }),
    message: "the first branch of when is a generator",
  },
  {
    name: "if on a comparison",
    code: "TW1006",
    make: () =>
      trace(({ i, shared }) => {
        const first = i.eq(0); // <- here
        if (wrong(first) as boolean) shared.store(1);
        i.lt(3);
      }),
    message: "the condition made by eq is never used",
    notes: ["the condition made by lt is not used either"],
  },
  {
    name: "unused test of a float",
    code: "TW1006",
    make: () => trace(({ row }) => row.isNan()), // <- here
    message: "the condition made by isNan is never used",
  },
  {
    name: "&& between comparisons",
    code: "TW1006",
    make: () =>
      trace(({ i, shared }) => {
        const first = i.gt(0); // <- here
        const both = (wrong(first) as boolean) && i.lt(3);
        when(wrong(both), () => {
          shared.store(1);
        });
      }),
    message: "the condition made by gt is never used",
  },
  {
    name: "reduced condition that nothing uses",
    code: "TW1006",
    make: () =>
      trace(({ row }) => {
        row.isNan().any(); // <- here
      }),
    message: "the condition made by any is never used",
  },
];

testMistakes("traced values are no JavaScript values", misuse);

test("console.log shows the type of a traced value", () => {
  const inspect = Symbol.for("nodejs.util.inspect.custom");
  const shown: unknown[] = [];
  trace(({ row, x }) => {
    for (const item of [row, x])
      shown.push((Reflect.get(item, inspect) as () => string).call(item));
  });
  expect(shown).toEqual(["tile<f32, [64]>", "ref<gmem, f32, [8, 64]>"]);
});

test("a condition may be used in any way that the kernel sees", () => {
  const make = () =>
    trace(({ i, row, shared }) => {
      const small = i.lt(2);
      const positive = row.gt(0);
      when(small.and(i.ge(1)), () => {
        shared.at(0).store(positive.select(row, 0));
      });
    });
  expect(make).not.toThrow();
});

test("after a mistake, the next kernel is traced from a clean start", () => {
  expect(() => trace(({ row }) => row.max({ axis: 3 }))).toThrow("TW2020");
  expect(() => trace(({ row }) => row.max())).not.toThrow();
});

test("a body may build another kernel", () => {
  const texts: string[] = [];
  kernel({ name: "outer" }, () => {
    const before = constant(f32, 1);
    texts.push(bodyText(kernel({ name: "inner" }, () => constant(f32, 2))));
    before.add(1);
  });
  expect(texts).toEqual(["%0 = constant {value = 2, dtype = f32, shape = []} : f32\nyield"]);
});
