import { describe, expect, test } from "vitest";
import { bodyText, testMistakes, trace, wrong } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { bf16, f32, i32 } from "../formats/dtype.ts";
import {
  accumulator,
  tensor,
  barrier,
  cdiv,
  concatenate,
  constant,
  dim,
  kernel,
  loop,
  returnIf,
  scalar,
  scoped,
  smem,
  switchCase,
  threadIndex,
  warps,
  wgmma,
  when,
  whileLoop,
  zeros,
} from "./index.ts";
import type { LoopControl, Scalar, Tile } from "./index.ts";

const flow: readonly Mistake[] = [
  {
    name: "accumulator used twice",
    code: "TW1011",
    make: () =>
      trace(() => {
        const sum = accumulator(f32, [64, 64]);
        sum.wait();
        sum.wait(); // <- here
      }),
    message: "inflight<f32, [64, 64]> was used twice",
    notes: ["the first use is here", "the accumulator is made here"],
  },
  {
    name: "accumulator in one branch alone",
    code: "TW2096",
    make: () =>
      trace(({ x }) => {
        const isSet = x.at(0, 0).loadScalar().gt(0);
        const sum = accumulator(f32, [64, 64]);
        const wait = () => void sum.wait();
        when(isSet, wait); // <- here
      }),
    message: "one branch of when consumes an accumulator that another leaves",
    expected: "each branch to consume inflight<f32, [64, 64]>, or to give it on",
    found: "Accumulator.wait in one, and nothing in the second branch, which may be missing",
    notes: ["the accumulator is defined here", "it is consumed by Accumulator.wait here"],
  },
  {
    name: "accumulator used in a case and after it",
    code: "TW1011",
    make: () =>
      trace(() => {
        const sum = accumulator(f32, [64, 64]);
        switchCase(0, [() => sum.wait(), () => zeros(f32, [64, 64])]);
        sum.wait(); // <- here
      }),
    found: "a use in case 0 of switchCase, and this one behind the branches",
    remedy: "give the accumulator on from each branch",
  },
  {
    name: "accumulator used twice in a branch",
    code: "TW1011",
    make: () =>
      trace(({ x }) => {
        const isSet = x.at(0, 0).loadScalar().gt(0);
        const sum = accumulator(f32, [64, 64]);
        const twice = () => {
          sum.waitPending(1);
          return sum;
        };
        when(isSet, twice, () => sum); // <- here
      }),
    found: "a second use",
  },
  {
    name: "accumulator carried and used",
    code: "TW1011",
    make: () =>
      trace(() => {
        const sum = accumulator(f32, [64, 64]);
        const end = loop({ to: 4, carry: sum }, (_, running) => running);
        end.wait();
        sum.wait(); // <- here
      }),
  },
  {
    name: "break after the loop",
    code: "TW1041",
    make: () =>
      trace(({ i }) => {
        const kept: LoopControl[] = [];
        loop(4, (_, control) => void kept.push(control));
        const [control] = kept;
        control?.breakIf(i.eq(1)); // <- here
      }),
    found: "one after its end",
    remedy: "call breakIf while the body runs",
  },
  {
    name: "continue of a loop around this one",
    code: "TW1041",
    make: () =>
      trace(({ i }) => {
        loop(4, (_, { continueIf }) => {
          whileLoop(
            i,
            (j) => j.lt(4),
            (j) => {
              continueIf(j.eq(i)); // <- here
              return j.add(1);
            },
          );
        });
      }),
    message: "continueIf stands outside of the body of loop",
    found: "one in the body of whileLoop within it",
  },
  {
    name: "carry that a break forgets",
    code: "TW1012",
    make: () =>
      trace(({ i, row }) => {
        loop({ to: 4, carry: { row } }, (k, { row: tile }, { breakIf }) => {
          breakIf(k.eq(i), wrong(undefined)); // <- here
          return { row: tile };
        });
      }),
    message: "carry.row: tile<f32, [64]> became nothing",
  },
  {
    name: "break decided while tracing",
    code: "TW1008",
    make: () =>
      trace(() => {
        loop(4, (_, { breakIf }) => {
          const isLast: boolean = true;
          breakIf(wrong(isLast)); // <- here
        });
      }),
    message: "the condition of breakIf must be a bool scalar",
    remedy: "decide it while tracing, with JavaScript's own if",
  },
  {
    name: "return of some threads",
    code: "TW1042",
    make: () =>
      kernel({ name: "k", threads: ["one", "two"] }, () => {
        returnIf(threadIndex().add(1).eq(2)); // <- here
      }),
    message: "returnIf asks which program thread it is",
  },
  {
    name: "carry of another shape",
    code: "TW1012",
    make: () =>
      trace(({ row }) => {
        const widen = (tile: Tile<"f32">) => concatenate([tile, tile], { axis: 0 });
        loop({ to: 4, carry: { sum: row } }, (_, { sum }) => ({ sum: widen(sum) })); // <- here
      }),
    message: "carry.sum: tile<f32, [64]> became tile<f32, [128]>",
    notes: ["the first is made here", "the second is made here"],
  },
  {
    name: "carry forgotten",
    code: "TW1012",
    make: () =>
      trace(({ row }) => {
        const body = wrong(() => undefined);
        loop({ to: 4, carry: [row] }, body); // <- here
      }),
    message: "carry[0]: tile<f32, [64]> became nothing",
  },
  {
    name: "carry under another name",
    code: "TW1012",
    make: () =>
      trace(({ i }) => {
        const condition = ({ k }: { readonly k: Scalar<"i32"> }) => k.lt(3);
        const body = wrong(() => ({ j: i }));
        whileLoop({ k: i }, condition, body); // <- here
      }),
    message: "carry.k: i32 became nothing",
  },
  {
    name: "branches of different dtypes",
    code: "TW1012",
    make: () =>
      trace(({ i }) => {
        const other = () => wrong(constant(i32, 1)) as Scalar<"f32">;
        when(i.eq(0), () => constant(f32, 1), other); // <- here
      }),
    message: "result differs between the branches: f32 and, in the second branch of when, i32",
  },
  {
    name: "cases of different form",
    code: "TW1012",
    make: () =>
      trace(({ i }) => {
        switchCase(i, [() => ({ a: i }), wrong(() => i)]); // <- here
      }),
    message: "result.a differs between the branches: i32 and, in case 1 of switchCase, nothing",
  },
  {
    name: "result without a second branch",
    code: "TW1013",
    make: () =>
      trace(({ i, row }) => {
        // @ts-expect-error one branch gives nothing
        when(i.eq(0), () => row.add(1)); // <- here
      }),
  },
  {
    name: "loop that stands still",
    code: "TW1014",
    make: () =>
      trace(() => {
        loop({ to: 4, step: 0 }, () => undefined); // <- here
      }),
    message: "a loop cannot count by 0",
  },
  {
    name: "loop with room for half a step",
    code: "TW1008",
    make: () =>
      trace(() => {
        loop({ to: 4, depth: 1.5 }, () => undefined); // <- here
      }),
    message: "the depth of a loop",
  },
  {
    name: "wait for no product",
    code: "TW1019",
    make: () => trace(() => accumulator(f32, [64, 64]).waitPending(0)), // <- here
    remedy: "write wait(), which gives the tile",
  },
];

testMistakes("control flow", flow);

describe("loops", () => {
  test("without carries", () => {
    const definition = kernel({ name: "k", outputs: { out: tensor(i32, [4]) } }, ({ out }) => {
      loop(4, (k) => {
        out.at(k).store(k);
      });
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = constant {value = 0, dtype = i32, shape = []} : i32
      %2 = constant {value = 4, dtype = i32, shape = []} : i32
      %3 = constant {value = 1, dtype = i32, shape = []} : i32
      loop %1, %2, %3 body(%4: i32) {
        %5 = slice_ref %0 offsets(%4) {sizes = [1], dropped = [0]} : ref<gmem, i32, []>
        store %5, %4
        yield
      }
      yield"
    `);
  });

  test("carry a tree and give it back", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [16, 4]) } }, ({ x }) => {
      const start = { sum: zeros(f32, [4]), pair: [constant(i32, 0), zeros(f32, [2])] } as const;
      const { sum, pair } = loop({ from: 2, to: 16, step: 2, carry: start }, (k, carry) => ({
        sum: carry.sum.add(x.at(k).load()),
        pair: [carry.pair[0].add(1), carry.pair[1]],
      }));
      sum.mul(2);
      pair[0].mul(3);
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = constant {value = 0, dtype = f32, shape = [4]} : tile<f32, [4]>
      %2 = constant {value = 0, dtype = i32, shape = []} : i32
      %3 = constant {value = 0, dtype = f32, shape = [2]} : tile<f32, [2]>
      %4 = constant {value = 2, dtype = i32, shape = []} : i32
      %5 = constant {value = 16, dtype = i32, shape = []} : i32
      %6, %7, %8 = loop %4, %5, %4 initial(%1, %2, %3) body(%9: i32, %10: tile<f32, [4]>, %11: i32, %12: tile<f32, [2]>) {
        %13 = slice_ref %0 offsets(%9, %2) {sizes = [1, 4], dropped = [0]} : ref<gmem, f32, [4]>
        %14 = load %13 : tile<f32, [4]>
        %15 = binary %10, %14 {fn = add} : tile<f32, [4]>
        %16 = constant {value = 1, dtype = i32, shape = []} : i32
        %17 = binary %11, %16 {fn = add} : i32
        yield %15, %17, %12
      } : tile<f32, [4]>, i32, tile<f32, [2]>
      %18 = constant {value = 2, dtype = f32, shape = [4]} : tile<f32, [4]>
      %19 = binary %6, %18 {fn = mul} : tile<f32, [4]>
      %20 = constant {value = 3, dtype = i32, shape = []} : i32
      %21 = binary %7, %20 {fn = mul} : i32
      yield"
    `);
  });

  test("match carries by name, not by the order in which they are written", () => {
    const definition = kernel({ name: "k" }, () => {
      const carry = { a: constant(i32, 1), b: constant(i32, 2) };
      const end = loop({ to: 4, carry }, (_, { a, b }) => ({ b, a }));
      end.a.add(1);
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%0 = constant {value = 1, dtype = i32, shape = []} : i32
      %1 = constant {value = 2, dtype = i32, shape = []} : i32
      %2 = constant {value = 0, dtype = i32, shape = []} : i32
      %3 = constant {value = 4, dtype = i32, shape = []} : i32
      %4, %5 = loop %2, %3, %0 initial(%0, %1) body(%6: i32, %7: i32, %8: i32) {
        yield %7, %8
      } : i32, i32
      %9 = binary %4, %0 {fn = add} : i32
      yield"
    `);
  });

  test("count to sizes and scalars", () => {
    const n = dim("n");
    const definition = kernel(
      { name: "k", grid: { i: 4 }, inputs: { x: tensor(f32, [n]) } },
      ({ i }) => {
        loop({ from: i, to: cdiv(n, 8) }, () => undefined);
      },
    );
    expect(bodyText(definition)).toContain(
      [
        "%2 = size {of = ceildiv(n, 8)} : i32",
        "%3 = constant {value = 1, dtype = i32, shape = []} : i32",
        "loop %1, %2, %3 body(%4: i32) {",
      ].join("\n"),
    );
  });

  test("while", () => {
    const definition = kernel({ name: "k", inputs: { limit: scalar(i32) } }, ({ limit }) => {
      whileLoop(
        constant(i32, 1),
        (k) => k.lt(limit),
        (k) => k.mul(2),
      );
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = constant {value = 1, dtype = i32, shape = []} : i32
      %2 = while %1 condition(%3: i32) {
        %4 = compare %3, %0 {predicate = lt} : bool
        yield %4
      } body(%5: i32) {
        %6 = constant {value = 2, dtype = i32, shape = []} : i32
        %7 = binary %5, %6 {fn = mul} : i32
        yield %7
      } : i32
      yield"
    `);
  });

  test("carry accumulators", () => {
    const definition = kernel(
      { name: "k", scratch: { a: smem(bf16, [64, 16]), b: smem(bf16, [16, 8]) } },
      ({ a, b }) => {
        const sum = accumulator(f32, [64, 8]);
        const end = loop({ to: 4, carry: sum }, (_, running) =>
          wgmma(running, a, b).waitPending(1),
        );
        end.wait();
      },
    );
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%0 = alloc {space = smem, dtype = bf16, shape = [64, 16], name = "a"} : ref<smem, bf16, [64, 16]>
      %1 = alloc {space = smem, dtype = bf16, shape = [16, 8], name = "b"} : ref<smem, bf16, [16, 8]>
      %2 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
      %3 = constant {value = 0, dtype = i32, shape = []} : i32
      %4 = constant {value = 4, dtype = i32, shape = []} : i32
      %5 = constant {value = 1, dtype = i32, shape = []} : i32
      %6 = loop %3, %4, %5 initial(%2) body(%7: i32, %8: inflight<f32, [64, 8]>) {
        %9 = wgmma %8, %0, %1 : inflight<f32, [64, 8]>
        %10 = wgmma_wait %9 {pending = 1, gives = accumulator} : inflight<f32, [64, 8]>
        yield %10
      } : inflight<f32, [64, 8]>
      %11 = wgmma_wait %6 {pending = 0, gives = tile} : tile<f32, [64, 8]>
      yield"
    `);
  });
});

describe("branches", () => {
  test("give results", () => {
    const definition = kernel({ name: "k", inputs: { s: scalar(f32) } }, ({ s }) => {
      const { sign } = when(
        s.lt(0),
        () => ({ sign: constant(f32, -1) }),
        () => ({ sign: constant(f32, 1) }),
      );
      sign.mul(s);
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = constant {value = 0, dtype = f32, shape = []} : f32
      %2 = compare %0, %1 {predicate = lt} : bool
      %3 = if %2 then {
        %4 = constant {value = -1, dtype = f32, shape = []} : f32
        yield %4
      } otherwise {
        %5 = constant {value = 1, dtype = f32, shape = []} : f32
        yield %5
      } : f32
      %6 = binary %3, %0 {fn = mul} : f32
      yield"
    `);
  });

  test("match results by name", () => {
    const definition = kernel({ name: "k", inputs: { s: scalar(i32) } }, ({ s }) => {
      const results = when(
        s.lt(0),
        () => ({ a: s, b: s.add(1) }),
        () => ({ b: s.add(2), a: s }),
      );
      results.a.add(results.b);
    });
    expect(bodyText(definition)).toContain("yield %0, %8");
  });

  test("of a switch", () => {
    const definition = kernel({ name: "k", inputs: { s: scalar(i32) } }, ({ s }) => {
      const chosen = switchCase(s, [() => constant(f32, 1), () => constant(f32, 2)]);
      chosen.add(1);
      switchCase(s, [() => undefined, () => undefined, () => undefined]);
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = switch %0 cases {
        %2 = constant {value = 1, dtype = f32, shape = []} : f32
        yield %2
      } cases {
        %3 = constant {value = 2, dtype = f32, shape = []} : f32
        yield %3
      } : f32
      %4 = constant {value = 1, dtype = f32, shape = []} : f32
      %5 = binary %1, %4 {fn = add} : f32
      switch %0 cases {
        yield
      } cases {
        yield
      } cases {
        yield
      }
      yield"
    `);
  });
});

describe("regions", () => {
  test("scoped memory", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      const tile = scoped({ buffer: smem(f32, [4]), ready: barrier() }, ({ buffer, ready }) => {
        buffer.store(x.load());
        ready.arrive();
        ready.wait();
        return buffer.load();
      });
      tile.add(1);
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = scoped body {
        %2 = alloc {space = smem, dtype = f32, shape = [4], name = "buffer"} : ref<smem, f32, [4]>
        %3 = alloc_barrier {count = 1, arrivals = 1, name = "ready"} : barrier<1, arrivals=1>
        %4 = load %0 : tile<f32, [4]>
        store %2, %4
        barrier_arrive %3
        barrier_wait %3
        %5 = load %2 : tile<f32, [4]>
        yield %5
      } : tile<f32, [4]>
      %6 = constant {value = 1, dtype = f32, shape = [4]} : tile<f32, [4]>
      %7 = binary %1, %6 {fn = add} : tile<f32, [4]>
      yield"
    `);
  });

  test("early ends are branches around what stands behind them", () => {
    const definition = trace(({ i, shared }) => {
      loop(4, (k, { breakIf, continueIf }) => {
        continueIf(k.eq(i));
        shared.at(k, 0).store(1);
        breakIf(k.gt(i));
        shared.at(k, 1).store(2);
      });
    });
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = block_index {axis = "i"} : i32
      %2 = alloc {space = smem, dtype = f32, shape = [8, 64], name = "shared"} : ref<smem, f32, [8, 64]>
      %3 = constant {value = 0, dtype = f32, shape = [64]} : tile<f32, [64]>
      %4 = constant {value = 0, dtype = f32, shape = [8, 64]} : tile<f32, [8, 64]>
      %5 = constant {value = 0, dtype = i32, shape = []} : i32
      %6 = constant {value = 4, dtype = i32, shape = []} : i32
      %7 = constant {value = 1, dtype = i32, shape = []} : i32
      loop %5, %6, %7 {breaks = true} body(%8: i32) {
        %9 = compare %8, %1 {predicate = eq} : bool
        %10 = if %9 then {
          %11 = constant {value = false, dtype = bool, shape = []} : bool
          yield %11
        } otherwise {
          %12 = slice_ref %2 offsets(%8, %5) {sizes = [1, 1], dropped = [0, 1]} : ref<smem, f32, []>
          %13 = constant {value = 1, dtype = f32, shape = []} : f32
          store %12, %13
          %14 = compare %8, %1 {predicate = gt} : bool
          %15 = if %14 then {
            %16 = constant {value = true, dtype = bool, shape = []} : bool
            yield %16
          } otherwise {
            %17 = slice_ref %2 offsets(%8, %7) {sizes = [1, 1], dropped = [0, 1]} : ref<smem, f32, []>
            %18 = constant {value = 2, dtype = f32, shape = []} : f32
            store %17, %18
            %19 = constant {value = false, dtype = bool, shape = []} : bool
            yield %19
          } : bool
          yield %15
        } : bool
        yield %10
      }
      yield"
    `);
  });

  test("a body that fails behind an early end leaves the kernel as it was", () => {
    const definition = trace(() => {
      const fails = (): void => {
        loop(4, (k, { breakIf }) => {
          breakIf(k.eq(2));
          throw new RangeError("of the body");
        });
      };
      expect(fails).toThrow("of the body");
    });
    expect(bodyText(definition)).not.toContain("if");
  });

  test("threads and warps", () => {
    const definition = kernel({ name: "k", threads: ["first", "second"] }, ({ first, second }) => {
      second(() => {
        warps((warp) => {
          warp.add(1);
        });
      });
      first(() => {
        threadIndex();
      });
    });
    expect(definition.kernel.threads).toEqual(["first", "second"]);
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "on_threads {threads = [1]} body {
        warps body(%0: i32) {
          %1 = constant {value = 1, dtype = i32, shape = []} : i32
          %2 = binary %0, %1 {fn = add} : i32
          yield
        }
        yield
      }
      on_threads {threads = [0]} body {
        %3 = thread_index : i32
        yield
      }
      yield"
    `);
  });
});
