import { describe, expect, test } from "vitest";
import { testMistakes, trace, wrong } from "../../test/language.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { kernel, loop, scalar, tensor, when, zeros } from "./index.ts";
import type { Scalar } from "./index.ts";

const spec = {
  name: "asked",
  grid: { i: 4 },
  inputs: { x: tensor(f32, [8]), n: scalar(i32) },
  outputs: { out: tensor(f32, [8]) },
};

testMistakes("conditions that JavaScript decides", [
  {
    name: "while on what only a run shows",
    code: "TW1006",
    make: () =>
      kernel(spec, ({ out }) => {
        loop(4, (k) => {
          while (k.lt(3)) out.at(0); // <- here
        });
      }),
    message: "the condition made by lt is never used",
    found: "one that nothing reads, again and again, as of a JavaScript while",
  },
  {
    name: "if on a scalar",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ i, out }) => {
        const tile = zeros(f32, [8]);
        // A comment with if (i) in it, and "text" with 'quotes'.
        if (i) out.store(tile); // <- here
      }),
    message: "JavaScript decides if (i) while the kernel is traced",
    remedy: "write when(condition",
  },
  {
    name: "while, which would never end",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ i, n, out }) => {
        out.store(0);
        while (n.sub(i).gt(0)) out.store(1); // <- here
      }),
    message: "while (n.sub(i).gt(0))",
    remedy: "write whileLoop",
  },
  {
    name: "for, which would never end",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ n: count, out }) => {
        for (let k = 0; count.gt(k); k += 1) out.store(k); // <- here
      }),
    remedy: "write loop(",
  },
  {
    name: "choice by a tile that was loaded",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ x, out }) => {
        const sum = x.load().sum();
        out.store(sum ? 1 : 0); // <- here
      }),
    message: "sum ?",
    remedy: "condition.select(a, b)",
  },
  {
    name: "and of a condition that is used",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ i, n, out }) => {
        const isFirst = i.eq(0);
        when(isFirst && n.gt(2), () => out.store(1)); // <- here
        when(isFirst, () => out.store(2));
      }),
    message: "isFirst &&",
    remedy: "write a.and(b)",
  },
  {
    name: "or, whose right side is never asked",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ i, n, out }) => {
        when(i.eq(0) || n.gt(2), () => out.store(1)); // <- here
      }),
    remedy: "write a.or(b)",
  },
  {
    name: "not",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ n, out }) => {
        const isNone: boolean = !n; // <- here
        out.store(isNone ? 1 : 0);
      }),
    remedy: "condition.not()",
  },
  {
    name: "identity with a number",
    code: "TW1045",
    make: () =>
      kernel(spec, ({ i, out }) => {
        const other: unknown = i;
        // @ts-expect-error an object is no number
        out.store(i === 3 ? 1 : other === i ? 2 : 0); // <- here
      }),
    message: "i === 3",
    remedy: "write a.eq(b)",
  },
]);

describe("conditions of JavaScript's own are left alone", () => {
  const bodies: { readonly [name: string]: Parameters<typeof kernel<{ i: 4 }>>[1] } = {
    "a name bound again": ({ i }) => {
      [1, 0].map((i) => (i ? 1 : 2));
      for (const i of [1]) if (i) zeros(f32, [i]);
      i.add(1);
    },
    "a variable of its own": ({ i }) => {
      let last: Scalar<"i32"> | undefined;
      for (let k = 0; k < 2; k += 1) last = last ? last.add(i) : i;
      const chosen = last !== undefined && last.dtype === i32 ? last : i;
      if (chosen) chosen.add(1);
    },
    "properties and options": ({ i }) => {
      const options = { causal: true, i: 0 };
      if (options.causal && !options.i) i.add(1);
      if (i.dtype === i32 ? options.i : !i.kind) i.add(2);
      const text = `${options.i ? "a" : "b"} if (i) x`;
      if (text.length > 3 && typeof i !== "number" && i instanceof Object) i.add(3);
      if (i === undefined || i !== i.add(0)) i.add(4);
    },
    "lists and other functions": ({ i }) => {
      const found = [i, i.add(1)].find((each) => each !== i);
      if (found) found.mul(2);
      const pick = (given: { readonly i?: Scalar<"i32"> }): number => (given.i ? 1 : 0);
      loop(pick({ i }), (k) => void k.add(1));
      const half = 4 / 2 / 1;
      if (half) i.add(/[/"]/.test("if") ? 1 : 2);
    },
    "a parameter that is assigned": ({ i: index }) => {
      let i: unknown = index;
      i = 0;
      if (i) index.add(1);
    },
  };
  test.each(Object.entries(bodies))("%s", (_, body) => {
    expect(() => kernel({ name: "k", grid: { i: 4 } }, body)).not.toThrow();
  });

  test("a window, which says that it is there", () => {
    expect(() =>
      kernel(spec, ({ x, out }) => {
        if (x) out.store(x.load());
      }),
    ).not.toThrow();
  });

  test("a body that is no function of one pattern", () => {
    expect(() =>
      kernel(spec, (given) => {
        if (given.i) given.out.store(0);
      }),
    ).not.toThrow();
    expect(() => trace(wrong(Math.max))).not.toThrow();
  });
});
