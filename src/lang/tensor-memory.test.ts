/** What is said of tensor memory and its products that cannot be, with the code of each. */
import { describe, expect, test } from "vitest";
import { bf16, f16, f32, f8e4m3fn, f8e8m0fnu } from "../formats/dtype.ts";
import { lower } from "../lower/stages.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { targets } from "../targets/target.ts";
import {
  all,
  barrier,
  copyAsync,
  full,
  kernel,
  smem,
  slice,
  tcgen05Commit,
  tcgen05Mma,
  tensor,
  tmem,
} from "./index.ts";
import type { Barrier, KernelSpec, Ref } from "./index.ts";

type Scratch = NonNullable<KernelSpec["scratch"]>;

/** The report of a kernel that is traced and compiled. */
function reportOf(
  scratch: Scratch,
  body: (refs: { readonly [name: string]: Ref }) => void,
  options: Partial<KernelSpec> = {},
): TilewrightError {
  try {
    const spec = { name: "k", scratch: { ...scratch, done: barrier() }, ...options };
    const { kernel: traced } = kernel(spec, (refs) => {
      body(refs as unknown as { readonly [name: string]: Ref });
    });
    lower(traced, targets.sm_100a);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

const factors = { a: smem(bf16, [128, 64]), b: smem(bf16, [64, 32]) };
type Body = (refs: { readonly [name: string]: Ref }) => void;

describe("tensor memory", () => {
  const sums = tmem(f32, [128, 32]);
  const product: Body = ({ sums: into, a, b }) => {
    if (into && a && b) tcgen05Mma(into, a, b, { adds: false });
  };
  test.each<[string, Scratch, Body, string]>([
    ["of 96 rows", { x: tmem(f32, [96, 32]) }, () => undefined, "TW2301"],
    ["by rows", { sums }, ({ sums: it }) => it?.at(slice(0, 64), all), "TW2302"],
    ["turned", { sums }, ({ sums: it }) => it?.transpose(), "TW2302"],
    ["reshaped", { sums }, ({ sums: it }) => it?.reshape([4096]), "TW2302"],
    ["multiplied as f32", { ...factors, sums, a: smem(f32, [128, 64]) }, product, "TW2303"],
    ["of another depth", { ...factors, sums, a: smem(bf16, [128, 32]) }, product, "TW2304"],
    ["of 8 of k", { sums, a: smem(bf16, [128, 8]), b: smem(bf16, [8, 32]) }, product, "TW2305"],
    [
      "of 64 rows by a row a thread",
      { x: tmem(f32, [64, 32]) },
      ({ x }) => x?.load({ shape: "32x32b" }),
      "TW2306",
    ],
    [
      "with sums that share columns",
      {
        ...factors,
        a: smem(f16, [128, 64]),
        b: smem(f16, [64, 32]),
        sums: tmem(f16, [128, 32], { packed: true }),
      },
      product,
      "TW6107",
    ],
    [
      "that there is not so much of",
      { x: tmem(f32, [3, 128, 256]), y: tmem(f32, [128, 8]) },
      ({ x, y }) => {
        y?.store(y.load());
        x?.at(0, all, slice(0, 8)).store(x.at(1, all, slice(0, 8)).load());
      },
      "TW6108",
    ],
  ])("%s", (_, scratch, body, code) => {
    const report = reportOf(scratch, body);
    expect(report.code, report.message).toBe(code);
    expect(report.position?.file).toContain("tensor-memory.test.ts");
  });

  test("with scales of factors that have none", () => {
    const scratch = { ...factors, sums, scales: tmem(f8e8m0fnu, [128, 4], { scales: true }) };
    const report = reportOf(scratch, ({ sums: into, a, b, scales }) => {
      if (into && a && b && scales) tcgen05Mma(into, a, b, { scales: [scales, scales] });
    });
    expect(report.code).toBe("TW2308");
  });

  test("of threads of two warps", () => {
    const report = reportOf({ sums }, ({ sums: it }) => it?.load(), { warps: 2 });
    expect(report.code).toBe("TW2307");
  });

  test("says the columns of each buffer where there is too little", () => {
    const report = reportOf(
      { first: tmem(f32, [2, 128, 256]), second: tmem(bf16, [128, 64], { packed: true }) },
      ({ first, second }) => {
        const part = first?.at(0, all, slice(0, 8));
        if (part) part.store(part.load());
        second?.store(second.load());
      },
    );
    expect(report.message).toContain("k needs 544 columns of tensor memory");
    expect(report.notes.map(({ message }) => message)).toEqual([
      "first: 512 columns",
      "second: 32 columns",
    ]);
  });

  test("is refused for targets that have none", () => {
    const { kernel: traced } = kernel(
      { name: "k", scratch: { sums, done: barrier() }, outputs: { out: tensor(f32, [128, 32]) } },
      (refs) => {
        refs.out.store(refs.sums.load());
        tcgen05Commit(refs.done);
      },
    );
    expect(() => lower(traced, targets.sm_120a)).toThrow(
      "tmem needs tensor memory, which sm_120a does not have",
    );
  });
});

describe("pairs of blocks", () => {
  const pair = true;
  const cluster = { grid: { i: 1 }, cluster: { half: 2 } };
  const sums = tmem(f32, [128, 32], { pair });
  const halves = { a: smem(bf16, [128, 64]), b: smem(bf16, [64, 16]) };
  const product: Body = ({ sums: into, a, b }) => {
    if (into && a && b) tcgen05Mma(into, a, b, { adds: false, pair });
  };
  const whole = { a: smem(bf16, [128, 64]), b: smem(bf16, [64, 32]) };
  const scalesOf = (scales: true | "halves") => tmem(f8e8m0fnu, [256, 4], { scales, pair });
  const narrow = {
    a: smem(f8e4m3fn, [64, 64]),
    b: smem(f8e4m3fn, [64, 128]),
    aScales: tmem(f8e8m0fnu, [128, 4], { scales: true, pair }),
  };
  const scaledProduct: Body = ({ sums: into, a, b, aScales, bScales }) => {
    if (into && a && b && aScales && bScales)
      tcgen05Mma(into, a, b, { adds: false, pair, scales: [aScales, bScales] });
  };
  test.each<[string, Scratch, Body, Partial<KernelSpec>, string]>([
    ["without a cluster", { sums }, () => undefined, {}, "TW2309"],
    [
      "in a cluster of three",
      { ...halves, sums: tmem(f32, [128, 32]) },
      product,
      { grid: { i: 1 }, cluster: { part: 3 } },
      "TW2309",
    ],
    ["with all of b in each", { ...whole, sums }, product, cluster, "TW2304"],
    [
      "of 24 columns",
      { ...halves, b: smem(bf16, [64, 12]), sums: tmem(f32, [128, 24], { pair }) },
      product,
      cluster,
      "TW2305",
    ],
    [
      "of 512 columns",
      { ...halves, b: smem(bf16, [64, 256]), sums: tmem(f32, [128, 512], { pair }) },
      product,
      cluster,
      "TW2305",
    ],
    [
      "whose sums are of one block",
      { ...halves, sums: tmem(f32, [128, 32]) },
      product,
      cluster,
      "TW6109",
    ],
    [
      "beside memory of one block",
      { ...halves, sums, more: tmem(f32, [128, 32]) },
      (refs) => {
        product(refs);
        refs["more"]?.store(refs["more"].load());
      },
      cluster,
      "TW6109",
    ],
    [
      "whose columns are taken from half of the lanes",
      { sums: tmem(f32, [64, 64], { pair }) },
      ({ sums: it }) => it?.at(all, slice(0, 32)).store(full(f32, [64, 32], 0)),
      cluster,
      "TW6107",
    ],
    [
      "with products on some columns of halves of the lanes",
      { a: smem(bf16, [64, 64]), b: smem(bf16, [64, 16]), sums: tmem(f32, [64, 64], { pair }) },
      ({ sums: it, ...rest }) => {
        if (it) product({ ...rest, sums: it.at(all, slice(0, 32)) });
      },
      cluster,
      "TW6107",
    ],
    [
      "with halves of some columns",
      { sums: tmem(f32, [64, 64], { pair }) },
      ({ sums: it }) =>
        it
          ?.at(all, slice(0, 32))
          .reshape([64, 2, 16])
          .store(full(f32, [64, 2, 16], 0)),
      cluster,
      "TW6107",
    ],
    [
      "with halves of 128 rows",
      { sums: tmem(f32, [128, 64], { pair }) },
      ({ sums: it }) => it?.reshape([128, 2, 32]).store(full(f32, [128, 2, 32], 0)),
      cluster,
      "TW6107",
    ],
    [
      "with scales in halves that have not 256 rows",
      { x: tmem(f8e8m0fnu, [128, 4], { scales: "halves", pair }) },
      () => undefined,
      cluster,
      "TW2301",
    ],
    [
      "of 64 rows with scales of b that are not in halves",
      { ...narrow, sums: tmem(f32, [64, 256], { pair }), bScales: scalesOf(true) },
      scaledProduct,
      cluster,
      "TW6107",
    ],
    [
      "of 128 rows with scales of b in halves",
      {
        ...narrow,
        a: smem(f8e4m3fn, [128, 64]),
        sums: tmem(f32, [128, 256], { pair }),
        bScales: scalesOf("halves"),
      },
      scaledProduct,
      cluster,
      "TW6107",
    ],
    [
      "with one half of the lanes",
      { sums: tmem(f32, [64, 64], { pair }) },
      ({ sums: it }) => it?.reshape([64, 2, 32]).at(all, 0, all).load(),
      cluster,
      "TW2302",
    ],
    [
      "of FP8 that lies across k in 24 columns a block",
      {
        a: smem(f8e4m3fn, [128, 64]),
        b: smem(f8e4m3fn, [64, 24], { layout: "shared(tile 8 8)" }),
        sums: tmem(f32, [128, 48], { pair }),
      },
      product,
      cluster,
      "TW6101",
    ],
  ])("%s", (_, scratch, body, options, code) => {
    const report = reportOf(scratch, body, options);
    expect(report.code, report.message).toBe(code);
    expect(report.position?.file).toContain("tensor-memory.test.ts");
  });

  test("copies that tell a leader lie in shared memory, and commits reach axes of the cluster", () => {
    const refused = (body: (refs: never) => void) => {
      const spec = {
        name: "k",
        ...cluster,
        scratch: { tile: smem(f32, [128]), done: barrier() },
        outputs: { out: tensor(f32, [128]) },
      };
      try {
        kernel(spec, (refs) => {
          body(refs as never);
        });
      } catch (error) {
        if (error instanceof TilewrightError) return error.code;
        throw error;
      }
      return "nothing";
    };
    type Refs = { readonly tile: Ref<"f32">; readonly out: Ref<"f32">; readonly done: Barrier };
    expect(
      refused(({ tile, out }: Refs) => {
        copyAsync(tile, out, { pair });
      }),
    ).toBe("TW2068");
    expect(
      refused(({ done }: Refs) => {
        tcgen05Commit(done, { multicast: "i" });
      }),
    ).toBe("TW2069");
  });
});
