/**
 * Elements of 4 bits that share a byte, accessed by several agents. Stores of the two halves of a byte are apart; two stores of one half race, as
 * those of an element of any other format do, and so does a load of the byte with a store to either half.
 */
import { describe, expect, test } from "vitest";
import {
  tensor,
  barrier,
  blockSync,
  f4e2m1fn,
  fromNumbers,
  full,
  i32,
  i4,
  iota,
  kernel,
  open,
  semaphore,
  smem,
  u4,
  warps,
  when,
} from "tilewright";
import type { Ref, Scalar } from "tilewright";
import { expectClean, expectFound } from "./support/verdicts.ts";

const formats = [
  ["i4", i4],
  ["u4", u4],
  ["f4e2m1fn", f4e2m1fn],
] as const;

const race = { simulator: "TW3001", emulator: "TW8014" } as const;

describe.each(formats)("elements of %s", (_, dtype) => {
  /** Each of two threads stores one element of a byte in shared memory. */
  const threads = (first: number, second: number) =>
    kernel(
      {
        name: "threads",
        threads: ["left", "right"],
        outputs: { out: tensor(dtype, [2]) },
        scratch: { tile: smem(dtype, [2]) },
      },
      ({ out, tile, left, right }) => {
        left(() => {
          tile.at(first).store(1);
          if (first === second) tile.at(1 - first).store(2);
        });
        right(() => {
          tile.at(second).store(2);
        });
        blockSync();
        left(() => {
          out.store((tile as Ref<"i4">).load() as never);
        });
      },
    );

  test("of one byte are stored by two threads", async () => {
    await expectClean([1, 2], threads(0, 1));
    await expectClean([2, 1], threads(1, 0));
  });

  test.each([0, 1])("half %i of a byte is stored by two threads", async (half) => {
    const says = new RegExp(String.raw`element \[${half}\] of tile`);
    await expectFound({ ...race, says }, threads(half, half));
  });

  test("one half of a byte is stored by two blocks, and what lies beside it by one", async () => {
    const blocks = kernel(
      { name: "blocks", grid: { i: 2 }, outputs: { out: tensor(dtype, [4]) } },
      ({ i, out }) => {
        out.at(i.add(1)).store(1);
        out.at(i.mul(3)).store(2);
        when(i.eq(0), () => {
          out.at(2).store(1);
        });
      },
    );
    await expectFound({ ...race, says: /element \[2\] of out/ }, blocks);
  });

  test("a byte is stored whole by one thread, and a half of it by another", async () => {
    const whole = kernel(
      { name: "whole", threads: ["byte", "half"], outputs: { out: tensor(dtype, [2]) } },
      ({ out, byte, half }) => {
        byte(() => {
          out.store(full(dtype, [2], 1));
        });
        half(() => {
          out.at(1).store(2);
        });
      },
    );
    await expectFound(race, whole);
  });
});

test("warps store elements of their own, and one element of two warps is a race", async () => {
  const each = (place: (warp: Scalar<"i32">) => Scalar<"i32">) =>
    kernel({ name: "each", outputs: { out: tensor(i4, [4]) } }, ({ out }) => {
      warps((warp) => {
        out.at(place(warp)).store(warp.cast(i4));
      });
    });
  await expectClean(
    [0, 1, 2, 3],
    each((warp) => warp),
  );
  await expectFound(
    race,
    each((warp) => warp.rem(2)),
  );
});

test("a barrier or a semaphore orders two stores of one element", async () => {
  const met = kernel(
    {
      name: "met",
      threads: ["first", "second"],
      outputs: { out: tensor(i4, [2]) },
      scratch: { done: barrier() },
    },
    ({ out, done, first, second }) => {
      first(() => {
        out.at(1).store(1);
        out.at(0).store(3);
        done.arrive();
      });
      second(() => {
        done.wait();
        out.at(1).store(2);
      });
    },
  );
  await expectClean([3, 2], met);
  const counted = kernel(
    {
      name: "counted",
      grid: { i: 3 },
      outputs: { out: tensor(i4, [2]) },
      scratch: { turn: semaphore() },
    },
    ({ i, out, turn }) => {
      turn.wait(i);
      out.at(1).store(i.cast(i4));
      when(i.eq(2), () => {
        out.at(0).store(5);
      });
      turn.signal();
    },
  );
  await expectClean([5, 2], counted);
});

test.each([8, 64])("of %i elements two are picked for one place", async (count) => {
  const scatter = kernel(
    {
      name: "scatter",
      inputs: { places: tensor(i32, [count]) },
      outputs: { out: tensor(i4, [count]) },
    },
    ({ places, out }) => {
      out.store(full(i4, [count], 0));
      out.at(places.load()).store(iota(i32, [count], { axis: 0 }).cast(i4));
    },
  );
  const own = Array.from({ length: count }, (_, at) => at);
  const signed = own.map((at) => ((at + 8) % 16) - 8);
  await expectClean(signed, scatter, { places: fromNumbers(i32, [count], own) });
  // The other of two that meet lies in the same warp, or in another one.
  const twice = own.map((at) => (at === count - 1 ? 0 : at));
  for (const [device, codes] of [
    ["simulator", ["TW3023"]],
    ["emulator", count === 8 ? ["TW8019"] : ["TW8014", "TW8023"]],
  ] as const)
    for (const seed of [0, 1, 2]) {
      const opened = await open(device, { seed });
      const found = await opened
        .run(scatter, { places: fromNumbers(i32, [count], twice) })
        .then(
          () => "nothing",
          (error: unknown) => (error as { readonly code: string }).code,
        )
        .finally(() => {
          opened.dispose();
        });
      expect(codes, `${device}, seed ${seed}: ${found}`).toContain(found);
    }
});

test("updates of flags in words are no stores of elements", async () => {
  const flags = kernel(
    { name: "flags", grid: { i: 4 }, inouts: { words: tensor(i32, [1]) } },
    ({ words }) => {
      words.at(0).atomic("and", ~0xf0);
      words.at(0).atomic("or", 0x30);
    },
  );
  await expectClean([0x30], flags, { words: fromNumbers(i32, [1], [0xf0]) });
});
