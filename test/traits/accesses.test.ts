/**
 * Claims about what ops access, and when they are done. The compiler puts a barrier or a fence between two accesses
 * that need one; without it the emulator must find a race, else the claim is of something that the op does not do.
 */
import { describe, expect, test } from "vitest";
import { bf16, f32, i32 } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import {
  accumulator,
  tensor,
  barrier,
  commitGroup,
  commitShared,
  copyAsync,
  dot,
  full,
  iota,
  kernel,
  slice,
  smem,
  waitGroup,
  wgmma,
} from "../../src/lang/index.ts";
import type { Barrier, KernelDefinition, Ref } from "../../src/lang/index.ts";
import { targets } from "../../src/targets/target.ts";
import type { Target } from "../../src/targets/target.ts";
import { runEdited, withoutLines } from "../support/edited-kernel.ts";

const [rows, columns] = [16, 64];
const inputs = {
  x: fromNumbers(
    f32,
    [rows, columns],
    Array.from({ length: rows * columns }, (_, index) => index % 5),
  ),
};

interface Parts {
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly own: Ref<"f32">;
  readonly counts: Ref<"i32">;
  readonly landed: Barrier;
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
}

function kernelOf(body: (parts: Parts) => void): KernelDefinition {
  return kernel(
    {
      name: "accesses",
      threads: ["main", "idle"],
      inputs: { x: tensor(f32, [rows, columns]) },
      outputs: { out: tensor(f32, [rows, columns]) },
      scratch: {
        own: smem(f32, [rows, columns]),
        counts: smem(i32, [rows, columns]),
        landed: barrier(),
        a: smem(bf16, [64, 16]),
        b: smem(bf16, [16, 16]),
      },
    },
    ({ main, ...parts }) => main(() => body(parts)),
  );
}

/** A part that is spread over all warps, of what one or two warps hold of the whole. */
const part = slice(4, 2);
const one = (shape: readonly number[]) => full(bf16, shape, 1);
const product = ({ a, b }: Parts) => wgmma(accumulator(f32, [64, 16]), a, b);

interface Case {
  /** What the compiler put there, and without which there is a race. */
  readonly needs: RegExp;
  readonly target?: Target;
  readonly body: (parts: Parts) => void;
}

const barrierFor = (name: string, deed: "have written" | "still read"): RegExp =>
  new RegExp(`bar\\.sync.*other lanes may ${deed} ${name}( before)?$`, "m");

const cases: { readonly [name: string]: Case } = {
  "load reads": {
    needs: barrierFor("own", "still read"),
    body({ x, out, own }) {
      own.store(x.load());
      waitGroup(0);
      out.store(own.load());
      own.at(part).store(x.at(part).load());
    },
  },
  "store writes": {
    needs: barrierFor("own", "have written"),
    body({ x, out, own }) {
      own.store(x.load());
      out.at(part).store(own.at(part).load());
    },
  },
  "loads by index read": {
    needs: barrierFor("own", "have written"),
    body({ x, out, own }) {
      own.store(x.load());
      const turned = iota(i32, [rows], { axis: 0 })
        .mul(-1)
        .add(rows - 1);
      out.store(own.at(turned).load());
    },
  },
  "stores by index write": {
    needs: barrierFor("own", "have written"),
    body({ x, out, own }) {
      const turned = iota(i32, [rows], { axis: 0 })
        .mul(-1)
        .add(rows - 1);
      own.at(turned).store(x.load());
      out.store(own.load());
    },
  },
  "atomic updates write": {
    needs: barrierFor("counts", "have written"),
    body({ x, out, counts }) {
      counts.store(full(i32, [rows, columns], 0));
      waitGroup(0);
      counts.atomicAdd(x.load().cast(i32));
      out.at(part).store(counts.at(part).load().cast(f32));
    },
  },
  "compareExchange writes": {
    needs: barrierFor("counts", "have written"),
    body({ x, out, counts }) {
      counts.store(full(i32, [rows, columns], 0));
      waitGroup(0);
      counts.compareExchange(x.load().cast(i32), 7);
      out.at(part).store(counts.at(part).load().cast(f32));
    },
  },
  "a tensor copy reads its source": {
    needs: barrierFor("own", "have written"),
    body({ x, out, own }) {
      own.store(x.load());
      commitShared();
      copyAsync(own, out);
      commitGroup();
      waitGroup(0);
    },
  },
  "a tensor copy writes its destination": {
    needs: barrierFor("own", "still read"),
    body({ x, out, own, landed }) {
      own.store(x.load());
      waitGroup(0);
      out.store(own.load());
      commitShared();
      copyAsync(x, own, { barrier: landed });
      landed.wait();
    },
  },
  "a copy by lanes writes its destination": {
    needs: barrierFor("own", "still read"),
    target: targets.sm_80,
    body({ x, out, own, landed }) {
      own.store(x.load());
      waitGroup(0);
      out.at(part).store(own.at(part).load());
      copyAsync(x, own, { barrier: landed });
      landed.wait();
    },
  },
  "wgmma reads what lanes wrote": {
    needs: barrierFor("[ab]", "have written"),
    body(parts) {
      parts.a.store(one([64, 16]));
      parts.b.store(one([16, 16]));
      commitShared();
      parts.out.reshape([64, 16]).store(product(parts).wait());
    },
  },
  "wgmma reads what lanes will write": {
    needs: barrierFor("b", "still read"),
    body(parts) {
      parts.a.store(one([64, 16]));
      parts.b.store(one([16, 16]));
      commitShared();
      const sum = product(parts).wait();
      parts.b.store(one([16, 16]));
      parts.out.reshape([64, 16]).store(sum);
    },
  },
  "dot reads by the asynchronous proxy": {
    needs: /fence\.proxy\.async.*the tensor cores read/m,
    body({ out, a, b }) {
      a.store(one([64, 16]));
      b.store(one([16, 16]));
      out.reshape([64, 16]).store(dot(a.load(), b.load()));
    },
  },
  "reductions write their scratch": {
    needs: /bar\.sync.*other lanes may have written .* before$/m,
    body({ x, out }) {
      const sum = x.load().sum();
      out.store(x.load().add(sum).max());
    },
  },
};

describe("what ops access", () => {
  test.each(Object.entries(cases))("%s", async (_, { needs, target = targets.sm_90a, body }) => {
    const definition = kernelOf(body);
    const { ptx, codes } = await runEdited(definition, inputs, { target });
    expect(ptx).toMatch(needs);
    expect(codes).toEqual([]);
    const without = await runEdited(definition, inputs, { target, edit: withoutLines(needs) });
    expect(without.codes.filter((code) => code.startsWith("TW80"))).not.toEqual([]);
  });
});

const unfinished: { readonly [name: string]: (wait: boolean) => KernelDefinition } = {
  "a tensor copy": (wait) =>
    kernelOf(({ x, out, own }) => {
      own.store(x.load());
      commitShared();
      copyAsync(own, out);
      commitGroup();
      if (wait) waitGroup(0, { read: true });
      own.store(x.load().neg());
      waitGroup(0);
    }),
  "a product": (wait) =>
    kernelOf((parts) => {
      parts.a.store(one([64, 16]));
      parts.b.store(one([16, 16]));
      commitShared();
      const started = product(parts);
      const sum = wait ? started.wait() : undefined;
      parts.b.store(one([16, 16]));
      parts.out.reshape([64, 16]).store(sum ?? started.wait());
    }),
};

describe("what goes on when an op is over", () => {
  test.each(Object.entries(unfinished))("%s, until it was waited for", async (_, definition) => {
    expect((await runEdited(definition(true), inputs)).codes).toEqual([]);
    expect((await runEdited(definition(false), inputs)).codes).not.toEqual([]);
  });
});
