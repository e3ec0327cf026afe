/**
 * What is left when a kernel or a scope ends, and halves of bytes that several agents store: faults that cost nothing in the run that has them, and that both
 * the simulator and the emulator must tell.
 */
import { dtypes } from "../../../src/formats/dtype.ts";
import {
  tensor,
  barrier,
  blockSync,
  commitGroup,
  copyAsync,
  f32,
  kernel,
  loop,
  scoped,
  smem,
  waitGroup,
  warps,
  when,
} from "../../../src/index.ts";
import type { Barrier, KernelDefinition, Ref, Scalar } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { family, faultyOf } from "./family.ts";
import type { AnyFamily } from "./family.ts";

const copyLeft = ["TW3009"];
const copyTrapped = ["TW8056"];

/** A thread that arrives for one that waits, by some barriers, in a scope or not. */
function arriving(random: Random): AnyFamily {
  const [count, needed, rounds] = [1 + random.below(3), 1 + random.below(3), 1 + random.below(3)];
  const blocks = 1 + random.below(3);
  const inScope = random.below(2) === 0;
  const at = random.below(count);
  const least = random.below(blocks);
  return family({
    name: `${rounds} phases of ${count} barriers that take ${needed} arrivals${inScope ? ", in a scope" : ""}, in ${blocks} blocks`,
    make: (is) => {
      const declared = {
        told: barrier({ count, arrivals: needed }),
        back: barrier({ count, arrivals: 1 }),
      };
      const body = ({ told, back }: Barriers, { i, out, sends, takes }: Given): void => {
        sends(() => {
          loop(rounds, () => {
            for (let each = 0; each < count; each += 1) {
              for (let arrival = 0; arrival < needed; arrival += 1) told.at(each).arrive();
              back.at(each).wait();
            }
          });
          const more = is("an arrival is left over")
            ? 1
            : is("phases are left over")
              ? 2 * needed
              : 0;
          if (more > 0)
            when(i.ge(least), () => {
              for (let arrival = 0; arrival < more; arrival += 1) told.at(at).arrive();
            });
        });
        takes(() => {
          loop(rounds, () => {
            for (let each = 0; each < count; each += 1) {
              told.at(each).wait();
              back.at(each).arrive();
            }
          });
        });
        takes(() => {
          out.at(i).store(1);
        });
      };
      return kernel(
        {
          name: "arriving",
          grid: { i: blocks },
          threads: ["sends", "takes"],
          outputs: { out: tensor(f32, [blocks]) },
          scratch: inScope ? {} : declared,
        } as never,
        (given: { readonly [name: string]: unknown }) => {
          const all = given as unknown as Given & Barriers;
          if (inScope)
            scoped(declared, (own) => {
              body(own, all);
            });
          else body(all, all);
        },
      ) as unknown as KernelDefinition;
    },
    faults: {
      ...(needed > 1 && { "an arrival is left over": ["TW3008"] }),
      "phases are left over": ["TW3008"],
    },
    trapped: {
      "an arrival is left over": ["TW8067"],
      "phases are left over": ["TW8066"],
    },
  });
}

interface Barriers {
  readonly told: Barrier;
  readonly back: Barrier;
}

interface Given {
  readonly i: Scalar<"i32">;
  readonly out: Ref<"f32">;
  readonly sends: (body: () => void) => void;
  readonly takes: (body: () => void) => void;
}

/** Tiles that come by TMA and go by it, so each begins at a multiple of 128 bytes; on targets that have one. */
function carried(random: Random): AnyFamily {
  const [tiles, length] = [1 + random.below(4), random.pick([32, 64])];
  const [reads, grouped, awaited] = [0, 1, 2].map(() => random.below(2) === 0);
  return family({
    name: `${tiles} tiles that come and go`,
    make: (is) =>
      kernel(
        {
          name: "carried",
          inputs: { x: tensor(f32, [tiles, length]) },
          outputs: { out: tensor(f32, [tiles, length]) },
          scratch: {
            own: smem(f32, [tiles, length]),
            more: smem(f32, [length]),
            full: barrier({ count: tiles }),
            other: barrier(),
          },
        },
        ({ x, out, own, more, full, other }) => {
          loop(tiles, (k) => {
            copyAsync(x.at(k), own.at(k), { barrier: full.at(k) });
          });
          if (is("a copy in is left")) copyAsync(x.at(0), more, { barrier: other });
          loop(tiles, (k) => {
            full.at(k).wait();
            copyAsync(own.at(k), out.at(k));
            if (grouped) commitGroup();
          });
          if (awaited) waitGroup(0, reads ? { read: true } : {});
        },
      ) as unknown as KernelDefinition,
    faults: {
      "a copy in is left": copyLeft,
    },
    trapped: {
      "a copy in is left": copyTrapped,
    },
    targets: ["sm_90a", "sm_100a"],
    placedAsUsual: true,
  });
}

/** Elements of 4 bits, each stored by one thread, block or warp. */
function halves(random: Random): AnyFamily {
  const dtype = dtypes[random.pick(["i4", "u4", "f4e2m1fn"] as const)];
  const isShared = random.below(2) === 0;
  const byWarps = random.below(2) === 0;
  const count = byWarps ? 4 : 2;
  const start = random.below(3);
  const length = start + count + random.below(4);
  const moved = random.below(count - 1) + 1;
  return family({
    name: `halves of bytes of ${dtype.name}, by ${byWarps ? "warps" : "threads"}`,
    make: (is) =>
      kernel(
        {
          name: "halves",
          threads: byWarps ? ["first"] : ["first", "second"],
          outputs: { out: tensor(dtype, [length]) },
          scratch: isShared ? { own: smem(dtype, [length]) } : {},
        } as never,
        (given: { readonly [name: string]: unknown }) => {
          const out = given["out"] as Ref<"i4">;
          const target = isShared ? (given["own"] as Ref<"i4">) : out;
          const on = (name: string, body: () => void): void => {
            (given[name] as (body: () => void) => void)(body);
          };
          const place = (agent: Scalar<"i32">): Scalar<"i32"> =>
            is("one half is stored by two")
              ? when(
                  agent.eq(moved),
                  () => agent.mul(0),
                  () => agent,
                )
              : agent;
          on("first", () => {
            for (let at = 0; at < length; at += 1)
              if (at < start || at >= start + count) target.at(at).store(1);
            if (is("one half is stored by two")) target.at(start + moved).store(1);
          });
          blockSync();
          if (byWarps)
            on("first", () => {
              warps((warp) => {
                target.at(place(warp).add(start)).store(2);
              });
            });
          else
            ["first", "second"].forEach((name, agent) => {
              on(name, () => {
                const own = is("one half is stored by two") && agent === moved ? 0 : agent;
                target.at(start + own).store(2);
              });
            });
          blockSync();
          if (isShared)
            on("first", () => {
              out.store(target.load());
            });
        },
      ) as unknown as KernelDefinition,
    faults: { "one half is stored by two": ["TW3001"] },
    trapped: { "one half is stored by two": ["TW8014"] },
  });
}

export const endings = faultyOf([arriving, carried, halves]);
