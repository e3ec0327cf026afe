/** Windows of one array: threads synchronize between accesses to them unless no element can be in both. */
import { describe, expect, test } from "vitest";
import { dtypes } from "../../formats/dtype.ts";
import { walkOps } from "../../ir/traverse.ts";
import { tensor, dim, gmem, iota, kernel, loop, slice, when, zeros } from "../../lang/index.ts";
import type { TensorSpec, Ref, Scalar } from "../../lang/index.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../stages.ts";

const { f32, i32, i4 } = dtypes;

interface Parts {
  readonly i: Scalar<"i32">;
  readonly places: Ref<"i32">;
  readonly out: Ref<"f32">;
}

/** How often lanes meet for what they do to `out`. */
function barriers(out: TensorSpec, body: (parts: Parts) => void): number {
  return reasons(out, body).length;
}

/** Why they do. */
function reasons(out: TensorSpec, body: (parts: Parts) => void): readonly string[] {
  const { kernel: traced } = kernel(
    {
      name: "boxes",
      grid: { i: 4 },
      inputs: { places: tensor(i32, [4]) },
      inouts: { out },
    },
    body as never,
  );
  const found: string[] = [];
  walkOps(place(traced, targets.sm_90a).kernel.body, (op) => {
    if (op.kind === "lane_barrier" && / out\b/.test(op.attributes.reason))
      found.push(op.attributes.reason);
  });
  return found;
}

const line = tensor(f32, [dim("n")]);
const some = zeros;
const put = (out: Ref<"f32">, at: Scalar<"i32">, width = 64): void => {
  out.at(slice(at, width)).store(some(f32, [width]));
};

describe("windows that have no element in common", () => {
  const apart: { readonly [name: string]: (parts: Parts) => void } = {
    "begin a width apart": ({ i, out }) => {
      const first = i.mul(256);
      put(out, first);
      put(out, first.add(64));
      put(out, first.sub(64));
    },
    "begin at multiples, however these are computed": ({ i, out }) => {
      put(out, i.mul(2).mul(64));
      put(out, i.mul(2).add(1).mul(64));
      put(out, i.mul(64).add(i.mul(64)).sub(-128));
    },
    "begin at what memory says": ({ i, places, out }) => {
      const first = places.at(i).loadScalar();
      put(out, first);
      put(out, first.add(1 << 20));
    },
    "are looked at through other windows": ({ i, out }) => {
      const window = (at: Scalar<"i32">): Ref<"f32"> => out.at(slice(at, 64)).reshape([8, 8]);
      window(i.mul(128))
        .at(0)
        .store(some(f32, [8]));
      window(i.mul(128).add(64))
        .transpose([1, 0])
        .at(0)
        .store(some(f32, [8]));
    },
    "lie in branches": ({ i, out }) => {
      when(
        i.lt(2),
        () => {
          put(out, i.mul(192));
        },
        () => {
          put(out, i.mul(192).add(64));
        },
      );
      put(out, i.mul(192).add(128));
    },
    "are stored and loaded": ({ i, out }) => {
      const after = out.at(slice(i.mul(128).add(64), 64));
      const before = out.at(slice(i.mul(128), 64));
      after.store(before.load());
    },
  };
  test.each(Object.keys(apart))("%s", (name) => {
    const body = apart[name] ?? expect.fail();
    expect(barriers(line, body)).toBe(0);
  });
});

test("windows that may have elements in common", () => {
  const twice =
    (second: (parts: Parts, first: Scalar<"i32">) => Scalar<"i32">) =>
    (parts: Parts): void => {
      const first = parts.i.mul(256);
      put(parts.out, first);
      put(parts.out, second(parts, first));
    };
  expect(
    barriers(
      line,
      twice((_, first) => first),
    ),
  ).toBe(1);
  expect(
    barriers(
      line,
      twice((_, first) => first.add(63)),
    ),
  ).toBe(1);
  expect(
    barriers(
      line,
      twice((_, first) => first.sub(63)),
    ),
  ).toBe(1);
  expect(
    barriers(
      line,
      twice(({ i }) => i.mul(257).add(64)),
    ),
  ).toBe(1);
  expect(
    barriers(
      line,
      twice(({ i, places }) => places.at(i).loadScalar()),
    ),
  ).toBe(1);
  // 2³² further on is where it was, and so is half of that twice.
  expect(
    barriers(
      line,
      twice((_, first) =>
        first
          .add(1 << 30)
          .add(1 << 30)
          .add(1 << 30)
          .add(1 << 30),
      ),
    ),
  ).toBe(1);
  // Nearly 2³¹ further on and as far back are neighbours.
  expect(
    barriers(line, ({ i, out }) => {
      put(out, i.mul(256).add(2 ** 31 - 1));
      put(out, i.mul(256).sub(2 ** 31 - 1));
    }),
  ).toBe(1);
  // The wider of the two counts.
  expect(
    barriers(line, ({ i, out }) => {
      put(out, i.mul(256), 128);
      put(out, i.mul(256).add(64));
    }),
  ).toBe(1);
  expect(
    barriers(line, ({ i, out }) => {
      put(out, i.mul(256));
      put(out, i.mul(256).sub(64), 128);
    }),
  ).toBe(1);
});

test("a value is another one in the next round", () => {
  const rounds = (body: (parts: Parts, round: Scalar<"i32">) => void): number =>
    barriers(line, (parts) => {
      loop(8, (round) => {
        body(parts, round);
      });
    });
  const both = ({ i, out }: Parts, round: Scalar<"i32">): void => {
    put(out, i.add(round).mul(64));
    put(out, i.add(round).mul(64).add(64));
  };
  // The first of a round meets the second of the round before; the second does not meet the first.
  expect(rounds(both)).toBe(1);
  // What a round stores lies beside what it has loaded, and is what the next round loads: lanes meet before that.
  const passedOn = reasons(line, ({ i, out }) => {
    loop(8, (round) => {
      const last = out.at(slice(i.add(round).sub(1).mul(64), 64)).load();
      out.at(slice(i.add(round).mul(64), 64)).store(last);
    });
  });
  expect(passedOn).toEqual(["other lanes may have written out"]);
  // What was stored before the loop is met by the first round alone, but that is not told from others.
  expect(
    barriers(line, ({ i, out }) => {
      put(out, i.mul(128));
      loop(8, () => {
        put(out, i.mul(128).add(64));
      });
    }),
  ).toBe(1);
});

test("axes of arrays, and arrays with strides of their own", () => {
  const square = (spec: TensorSpec, [rows, columns]: readonly [number, number]): number =>
    barriers(spec, ({ i, out }) => {
      const at = (down: number, along: number): Ref<"f32"> =>
        out.at(slice(i.mul(16).add(down), 8), slice(along, 8));
      at(0, 0).store(some(f32, [8, 8]));
      at(rows, columns).store(some(f32, [8, 8]));
    });
  const n = dim("n");
  expect(square(tensor(f32, [64, 64]), [8, 0])).toBe(0);
  expect(square(tensor(f32, [64, 64]), [0, 8])).toBe(0);
  expect(square(tensor(f32, [64, 64]), [4, 4])).toBe(1);
  // Rows that lie in each other, and rows of which nobody knows how far apart they lie.
  expect(square(tensor(f32, [64, 64], { strides: [4, 1] }), [8, 0])).toBe(1);
  expect(square(tensor(f32, [64, 64], { strides: [n, 1] }), [8, 0])).toBe(1);
  expect(square(tensor(f32, [64, 64], { strides: [100, 1] }), [8, 0])).toBe(0);
  const within = (spec: TensorSpec): number =>
    barriers(spec, ({ i, out }) => {
      out.at(i, slice(0, 8)).store(some(f32, [8]));
      out.at(i, slice(8, 8)).store(some(f32, [8]));
    });
  expect(within(tensor(f32, [64, 64], { strides: [n, 1] }))).toBe(0);
  expect(within(tensor(f32, [64, 64], { strides: [1, n] }))).toBe(1);
});

test("elements narrower than a byte share one", () => {
  const stored = barriers(tensor(i4, [dim("n")]), ({ i, out }) => {
    const narrow = out as unknown as Ref<"i4">;
    const odd = (at: Scalar<"i32">): void => {
      narrow.at(slice(at, 64)).store(iota(i32, [64], { axis: 0 }).and(1).cast(i4));
    };
    odd(i.mul(256).add(1));
    odd(i.mul(256).add(65));
  });
  expect(stored).toBe(1);
});

test("memory that a kernel has for itself", () => {
  const { kernel: traced } = kernel(
    {
      name: "own",
      grid: { i: 4 },
      scratch: { kept: gmem(f32, [4, 128]) },
      outputs: { out: tensor(f32, [4]) },
    },
    ({ i, kept, out }) => {
      for (const at of [0, 64]) kept.at(i, slice(at, 64)).store(some(f32, [64]));
      out.at(slice(i, 1)).store(kept.at(i).load().sum({ axis: 0, keepDims: true }));
    },
  );
  const reasons: string[] = [];
  walkOps(place(traced, targets.sm_90a).kernel.body, (op) => {
    if (op.kind === "lane_barrier") reasons.push(op.attributes.reason);
  });
  // Between the stores they do not meet, but before they load what they stored.
  expect(reasons).toEqual([expect.stringContaining("other lanes may have written")]);
});
