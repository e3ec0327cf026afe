/**
 * Programmatic dependent launch: a kernel that starts before the one before it has ended accesses global memory behind its wait, on every
 * path and in every warp, as traced and as compiled; a kernel of which that is not known is not launched so.
 */
import { describe, expect, test } from "vitest";
import {
  tensor,
  barrier,
  blockSync,
  copyAsync,
  debugPrint,
  f32,
  gmem,
  i32,
  kernel,
  launchNextKernel,
  loop,
  operation,
  prefetch,
  profile,
  scalar,
  semaphore,
  smem,
  switchCase,
  threadIndex,
  waitForPreviousKernel,
  warps,
  when,
  whileLoop,
  zeros,
} from "tilewright";
import type { Barrier, KernelDefinition, Ref, Scalar, Semaphore } from "tilewright";
import { lower } from "../src/lower/stages.ts";
import { profiledKernel } from "../src/passes/profile-marks.ts";
import { targets } from "../src/targets/target.ts";
import { rejectsBroken } from "./support/broken-placed.ts";
import { codeOf } from "./support/library-checks.ts";

interface Things {
  readonly i: Scalar<"i32">;
  readonly limit: Scalar<"i32">;
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly own: Ref<"f32">;
  readonly buffer: Ref<"f32">;
  readonly ready: Barrier;
  readonly count: Semaphore;
  readonly copies: (body: () => void) => void;
  readonly computes: (body: () => void) => void;
}

function started(body: (things: Things) => void): KernelDefinition {
  return kernel(
    {
      name: "started",
      grid: { i: 4 },
      threads: ["copies", "computes"],
      inputs: { x: tensor(f32, [4, 64]), limit: scalar(i32) },
      inouts: { out: tensor(f32, [4, 64]) },
      scratch: {
        own: gmem(f32, [4, 64]),
        buffer: smem(f32, [64]),
        ready: barrier(),
        count: semaphore([1]),
      },
    },
    body as never,
  ) as unknown as KernelDefinition;
}

const wait = (): void => waitForPreviousKernel();

/** What is refused: the access comes before a wait on some way of some warp. */
const broken: { readonly [name: string]: (things: Things) => void } = {
  "a load before the wait": ({ i, x, out }) => {
    const row = x.at(i).load();
    wait();
    out.at(i).store(row);
  },
  "a store before the wait": ({ i, out }) => {
    out.at(i).store(0);
    wait();
  },
  "a store into scratch before the wait": ({ i, own }) => {
    own.at(i).store(0);
    wait();
  },
  "an atomic update before the wait": ({ i, out }) => {
    out.at(i).atomicAdd(zeros(f32, [64]));
    wait();
  },
  "a counter before the wait": ({ count }) => {
    count.at(0).signal();
    wait();
  },
  "a counter that is waited for before the wait": ({ count }) => {
    count.at(0).wait(0);
    wait();
  },
  "a message before the wait": ({ i }) => {
    debugPrint("{}", i);
    wait();
  },
  "a wait in one branch": ({ i, limit, out }) => {
    when(limit.gt(0), wait);
    out.at(i).store(0);
  },
  "a wait in one of some cases": ({ i, limit, out }) => {
    switchCase(limit, [wait, () => undefined, wait]);
    out.at(i).store(0);
  },
  "a wait in one thread": ({ i, out, copies, computes }) => {
    copies(wait);
    computes(() => {
      out.at(i).store(0);
    });
  },
  "a wait in one thread, by its index": ({ i, out }) => {
    when(threadIndex().eq(0), wait);
    when(threadIndex().ge(1), () => {
      out.at(i).store(0);
    });
  },
  "a wait in one warp": ({ i, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.eq(0), wait);
        when(warp.le(1), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a wait in every other warp": ({ i, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.rem(2).eq(0), wait);
        when(warp.mul(2).add(1).eq(3), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a wait in every other warp of some blocks": ({ i, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.add(i).rem(2).eq(0), wait);
        when(warp.eq(2), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a wait in a warp that does more than one thing asks for": ({ i, limit, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.eq(2).and(limit.gt(0)), wait);
        when(warp.eq(2), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a store of a warp under one more condition": ({ i, limit, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.ne(2), wait);
        when(warp.eq(2).and(limit.gt(0)), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a store of a warp unless one more condition holds": ({ i, limit, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.ne(2), wait);
        when(warp.ne(2).or(limit.gt(0)).not(), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "copies of a helper's warp": ({ i, x, buffer, ready, copies, computes }) => {
    computes(() => {
      wait();
      ready.wait();
    });
    copies(() => {
      warps((warp) => {
        when(warp.eq(0), () => {
          copyAsync(x.at(i), buffer, { barrier: ready });
        });
      });
    });
  },
  "a wait in a loop that may have no rounds": ({ i, limit, out }) => {
    loop(limit, wait);
    out.at(i).store(0);
  },
  "a wait in rounds that are not the first": ({ i, limit, out, copies, computes }) => {
    computes(wait);
    copies(() => {
      loop(limit, (round) => {
        when(round.eq(1), wait);
        out.at(i).store(0);
      });
    });
  },
  "a wait in the first round of another loop": ({ i, limit, out, copies, computes }) => {
    computes(wait);
    copies(() => {
      loop(limit, (round) => {
        loop({ from: 3, to: limit }, () => {
          when(round.eq(0), wait);
          out.at(i).store(0);
        });
      });
    });
  },
  "a load in a condition": ({ x, out, limit }) => {
    whileLoop(
      limit,
      (round) => x.at(round, 0).loadScalar().gt(0),
      (round) => {
        wait();
        return round.sub(1);
      },
    );
    out.at(0).store(0);
  },
  "blocks that end without a wait": ({ limit, i, out }) => {
    when(limit.gt(0), () => {
      wait();
      out.at(i).store(0);
    });
  },
  "a store while another array is settled": ({ i, x, out }) => {
    out.at(i).store(x.at(i).load());
    waitForPreviousKernel({ independent: ["x"] });
  },
};

/** What starts early. */
const sound: { readonly [name: string]: (things: Things) => void } = {
  "a wait for all": ({ i, x, out }) => {
    wait();
    out.at(i).store(x.at(i).load());
  },
  "the next kernel is let go first": ({ i, out }) => {
    launchNextKernel();
    wait();
    out.at(i).store(0);
  },
  "what is asked for ahead, and shared memory": ({ i, x, out, buffer }) => {
    prefetch(x);
    buffer.store(1);
    blockSync();
    wait();
    out.at(i).store(buffer.load());
  },
  "a wait in both branches": ({ i, limit, out }) => {
    when(limit.gt(0), wait, wait);
    out.at(i).store(0);
  },
  "a wait in each thread, by its index": ({ i, out }) => {
    when(threadIndex().eq(0), wait, () => {
      wait();
      out.at(i).store(0);
    });
  },
  "a warp of its own": ({ i, x, out, buffer, ready, copies, computes }) => {
    copies(() => {
      warps((warp) => {
        when(warp.eq(0), () => {
          wait();
          copyAsync(x.at(i), buffer, { barrier: ready });
        });
      });
    });
    computes(() => {
      wait();
      ready.wait();
      out.at(i).store(buffer.load());
    });
  },
  "a wait in every other warp, which alone stores": ({ i, out, copies, computes }) => {
    computes(wait);
    copies(() => {
      warps((warp) => {
        when(warp.rem(2).eq(0), wait);
        when(warp.shl(1).eq(4), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a wait under two conditions, of which the warp decides": ({ i, limit, out, copies }) => {
    copies(() => {
      warps((warp) => {
        when(warp.rem(2).ne(0).or(limit.gt(0)).not(), () => undefined, wait);
        when(warp.eq(1).and(limit.gt(0)), () => {
          out.at(i).store(0);
        });
      });
    });
  },
  "a wait in the first round": ({ i, limit, out, copies, computes }) => {
    computes(wait);
    copies(() => {
      loop({ from: limit, to: limit.add(2) }, (round) => {
        when(round.eq(limit), wait);
        out.at(i).store(0);
      });
    });
  },
  "a wait in a condition": ({ i, limit, out }) => {
    whileLoop(
      limit,
      (round) => {
        wait();
        return round.gt(0);
      },
      (round) => {
        out.at(i).store(0);
        return round.sub(1);
      },
    );
  },
  "a wait in rounds that there are": ({ i, out }) => {
    loop(2, wait);
    out.at(i).store(0);
  },
};

test.each(Object.entries(broken))("%s is refused", (_, body) => {
  expect(codeOf(() => started(body))).toBe("TW2223");
});

test.each(Object.entries(sound))("%s starts early", (_, body) => {
  expect(lower(started(body).kernel, targets.sm_90a).dependentLaunch).toBe(true);
});

test("independent arrays are inputs", () => {
  expect(codeOf(() => started(() => waitForPreviousKernel({ independent: ["out"] })))).toBe(
    "TW2224",
  );
});

test.each([null, 5, {}, true, "x", [5]])(
  "independent arrays are named in a list, not by %j",
  (independent) => {
    const options = { independent: independent as never };
    expect(codeOf(() => started(() => waitForPreviousKernel(options)))).toBe("TW1008");
  },
);

test("kernels do not start early on targets that cannot wait, nor where marks are written at once", () => {
  const { kernel: traced } = started(sound["a wait for all"] as (things: Things) => void);
  expect(lower(traced, targets.sm_80).dependentLaunch).toBe(false);
  const marked = started(({ i, out }) => {
    profile("all", () => {
      waitForPreviousKernel();
      out.at(i).store(0);
    });
  });
  const profiled = profiledKernel(marked.kernel);
  if (profiled === undefined) throw new Error("the kernel has marks");
  expect(lower(profiled.kernel, targets.sm_90a).dependentLaunch).toBe(false);
});

const placed = `kernel @placed grid [] threads [main] target sm_90a shared 0 layouts [A = "(W0 W1 | L0 L1 L2 L3 L4)"] (
  input %0 "x": ref<gmem, f32, [32, 32]>,
  output %1 "out": ref<gmem, f32, [32, 32]>
) {
  grid_dependency {action = wait}
  %2 = load %0 {unit = "global 4"} : tile<f32, [32, 32], A>
  store %1, %2 {unit = "global 4"}
  yield
}
`;

const load = '  %2 = load %0 {unit = "global 4"} : tile<f32, [32, 32], A>\n';

rejectsBroken({ placed }, [
  [
    "TW6211",
    [
      {
        what: "a load has come before the wait",
        of: "placed",
        replace: `  grid_dependency {action = wait}\n${load}`,
        by: `${load}  grid_dependency {action = wait}\n`,
      },
    ],
  ],
]);

describe("what is read before the wait in a plan", () => {
  const row = tensor(f32, [64]);
  const arrays = { inputs: { lengths: row }, outputs: { sums: row } };
  const first = (body: (act: () => void) => void): KernelDefinition =>
    kernel({ name: "first", ...arrays }, ({ lengths, sums }) => {
      body(() => {
        sums.store(lengths.load());
      });
    }) as unknown as KernelDefinition;
  const second = kernel(
    { name: "second", inputs: { lengths: row, sums: row }, outputs: { out: row } },
    ({ lengths, sums, out }) => {
      const own = lengths.load();
      waitForPreviousKernel({ independent: ["lengths"] });
      out.store(own.add(sums.load()));
    },
  ) as unknown as KernelDefinition;
  const behind = first((act) => {
    waitForPreviousKernel();
    launchNextKernel();
    act();
  });
  const ahead = first((act) => {
    launchNextKernel();
    waitForPreviousKernel();
    act();
  });

  const planned = (kernels: readonly KernelDefinition[], lengths = "x"): string =>
    codeOf(
      () =>
        operation({
          name: "planned",
          inputs: { x: row },
          outputs: { out: row },
          plan: () => ({
            configuration: {},
            source: "given",
            scratch: { sums: { dtype: f32, shape: [64] } },
            launches: kernels.map((each) => ({
              kernel: each,
              arguments:
                each === second
                  ? {
                      lengths: { argument: lengths },
                      sums: { argument: "sums" },
                      out: { argument: "out" },
                    }
                  : { lengths: { argument: "x" }, sums: { argument: "sums" } },
            })),
          }),
        }).plan().launches,
    );

  test("is what the launch before it leaves alone, which waits before it lets this one go", () => {
    expect(planned([behind, second])).toBe("nothing was thrown");
    expect(planned([second])).toBe("TW9908");
    expect(planned([ahead, second])).toBe("TW9908");
    expect(planned([behind, second], "sums")).toBe("TW9908");
  });

  test("starts early in a plan alone", () => {
    expect(lower(second.kernel, targets.sm_90a).dependentLaunch).toBe("in a plan");
  });
});
