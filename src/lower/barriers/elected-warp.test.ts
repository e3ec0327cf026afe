/** Loops of waits and copies are one warp's; others stay with the whole thread. Both run clean and right. */
import { describe, expect, test } from "vitest";
import { runEdited } from "../../../test/support/edited-kernel.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { OpKind } from "../../ir/ops.ts";
import { walkOps } from "../../ir/traverse.ts";
import {
  tensor,
  barrier,
  commitShared,
  constant,
  copyAsync,
  kernel,
  loop,
  smem,
  when,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../stages.ts";

const [rounds, stages, rows, columns] = [7, 2, 8, 16];
const numbers = Array.from({ length: rounds * rows * columns }, (_, index) => index % 13);
const x = fromNumbers(f32, [rounds, rows, columns], numbers);
const sums = Array.from({ length: rows * columns }, (_, at) =>
  numbers.reduce((sum, value, index) => (index % (rows * columns) === at ? sum + value : sum), 0),
);

type Extra = "nothing" | "a result" | "a store";

/** A thread copies round after round for another, and does something else besides. */
const pipeline = (extra: Extra): KernelDefinition =>
  kernel(
    {
      name: "pipeline",
      threads: ["copy", "add"],
      inputs: { x: tensor(f32, [rounds, rows, columns]) },
      outputs: { out: tensor(f32, [rows, columns]), count: tensor(i32, [rounds]) },
      scratch: {
        tiles: smem(f32, [stages, rows, columns]),
        full: barrier({ count: stages }),
        empty: barrier({ count: stages }),
      },
    },
    ({ x: source, out, count, tiles, full, empty, copy, add }) => {
      copy(() => {
        const copied = loop({ to: rounds, carry: constant(i32, 0) }, (round, before) => {
          const slot = round.rem(stages);
          when(round.ge(stages), () => empty.at(slot).wait());
          copyAsync(source.at(round), tiles.at(slot), { barrier: full.at(slot) });
          if (extra === "a store") count.at(round).store(round);
          return before.add(1);
        });
        if (extra === "a result") count.store(copied);
      });
      add(() => {
        const sum = loop({ to: rounds, carry: zeros(f32, [rows, columns]) }, (round, total) => {
          const slot = round.rem(stages);
          full.at(slot).wait();
          const tile = tiles.at(slot).load();
          commitShared();
          when(round.lt(rounds - stages), () => empty.at(slot).arrive());
          return total.add(tile);
        });
        out.store(sum);
        if (extra === "nothing") count.store(0);
      });
    },
  );

function kindsOf({ kernel: traced }: KernelDefinition): readonly OpKind[] {
  const kinds: OpKind[] = [];
  walkOps(place(traced, targets.sm_90a).kernel.body, ({ kind }) => kinds.push(kind));
  return kinds;
}

describe("a loop of waits and copies", () => {
  test("is one warp's, and needs no barrier of lanes", () => {
    const kinds = kindsOf(pipeline("nothing"));
    expect(kinds).toContain("warps");
    expect(kinds).not.toContain("lane_barrier");
  });

  test.each(["a result", "a store"] as const)("with %s is all warps'", (extra) => {
    const kinds = kindsOf(pipeline(extra));
    expect(kinds).not.toContain("warps");
    expect(kinds).toContain("lane_barrier");
  });

  test.each(["nothing", "a result", "a store"] as const)("with %s runs right", async (extra) => {
    for (const seed of [1, 2]) {
      const { codes, results } = await runEdited(pipeline(extra), { x }, { seed });
      expect(codes).toEqual([]);
      expect(results?.["out"] && [...toNumbers(results["out"])]).toEqual(sums);
    }
  });
});
