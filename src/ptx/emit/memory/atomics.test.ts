import { describe, expect, test } from "vitest";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { assemble } from "../../../../test/support/accepted-assembly.ts";
import { emitMoved, expectSame } from "../../../../test/support/memory-kernels.ts";
import { isTaken } from "../../../../test/support/sample.ts";
import { bf16, f16, f32, f64, i16, i32, i64, tf32, u16, u32, u64 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { tensor, full, iota, kernel, slice, smem, warps } from "../../../lang/index.ts";
import type { AtomicFunction } from "../../../lang/index.ts";
import { parseLayout } from "../../../layout/algebra/parse-layout.ts";
import { printPtx } from "../../printer.ts";

const integers = [i32, u32, i64, u64];
const functions: { readonly [F in AtomicFunction]: readonly DType[] } = {
  add: [...integers, f16, bf16, f32, f64],
  min: [...integers, f16, bf16],
  max: [...integers, f16, bf16],
  and: integers,
  or: integers,
  xor: integers,
  exchange: [...integers, f32, tf32, f64],
};

/** Updates an overhanging window by a tile and gives the old values. */
function updateTile(dtype: DType, fn: AtomicFunction, space: "global" | "shared", wanted: boolean) {
  return kernel(
    {
      name: "update",
      grid: { i: 1 },
      inputs: { x: tensor(dtype, [40]) },
      outputs: { old: tensor(dtype, [40]) },
      inouts: { sums: tensor(dtype, [37]) },
      scratch: { buffer: smem(dtype, [40]) },
    },
    ({ x, old, sums, buffer }) => {
      if (space === "shared") buffer.store(sums.at(slice(0, 40)).load());
      const target = space === "shared" ? buffer : sums.at(slice(0, 40));
      const before = target.atomic(fn, x.load());
      if (wanted) old.store(before);
      if (space === "shared") sums.at(slice(0, 40)).store(buffer.load());
    },
  );
}

const layouts = ["(L0 L1 L2 L3 L4)", "(R0 L2 L3 L4 W0)", "(L0 L1 L2 L3 L4 W0)", "()"];

describe("atomic updates", () => {
  test.each(Object.entries(functions))("%s", async (fn, formats) => {
    const number = Object.keys(functions).indexOf(fn);
    for (const [index, dtype] of formats.filter(({ kind }) => kind !== "float").entries())
      for (const [place, space] of (["global", "shared"] as const).entries()) {
        if (!isTaken(8 * number + 2 * index + place, 2)) continue;
        const { kernel: body } = updateTile(dtype, fn as AtomicFunction, space, true);
        const layout = parseLayout(layouts[index] ?? "()");
        const message = `${fn} of ${dtype.name} in ${space} memory, ${layout.text}`;
        await expectSame({ kernel: body, layout: () => layout }, index, message);
      }
  });

  test("floats are added and compared as the simulator does", async () => {
    for (const [index, dtype] of [f16, bf16, f32, f64].entries())
      for (const fn of dtype.bits === 16 ? (["add", "min", "max"] as const) : (["add"] as const))
        for (const wanted of [true, false]) {
          const space = index % 2 === 0 ? "global" : "shared";
          const { kernel: body } = updateTile(dtype, fn, space, wanted);
          const message = `${fn} of ${dtype.name}`;
          await expectSame({ kernel: body, numbers: true }, index, message);
        }
  });

  test("a scalar is updated once and all lanes know what was there", async () => {
    const { kernel: body } = kernel(
      {
        name: "counters",
        grid: { i: 3 },
        inputs: {},
        outputs: { old: tensor(i64, [3, 64]) },
        inouts: { counters: tensor(i64, [3]) },
      },
      ({ i, old, counters }) => {
        const before = counters.at(i).atomicAdd(5n);
        old.at(i).store(iota(i64, [64], { axis: 0 }).add(before));
      },
    );
    await expectSame({ kernel: body }, 1, "counters");
  });

  test("elements that are known to lie outside were nothing", async () => {
    const { kernel: body } = kernel(
      {
        name: "outside",
        inputs: { x: tensor(f16, [16, 16]) },
        outputs: { old: tensor(f16, [16, 16]) },
        inouts: { sums: tensor(f16, [5, 16]) },
      },
      ({ x, old, sums }) => {
        old.store(sums.at(slice(0, 16)).atomicAdd(x.load()));
      },
    );
    const layout = parseLayout("(R0 R1 R2 R3 | L0 L1 L2 L3)");
    await expectSame(
      { kernel: body, layout: () => layout, numbers: true },
      1,
      "rows 5 to 15 are outside",
    );
  });

  test("an update that changes nothing only looks, and others are updates", async () => {
    const looks = (fn: AtomicFunction, value: number, space: "global" | "shared") =>
      kernel(
        {
          name: "looks",
          grid: { i: 2 },
          outputs: { old: tensor(u64, [2, 40]) },
          inouts: { words: tensor(u64, [2, 40]) },
          scratch: { buffer: smem(u64, [40]) },
        },
        ({ i, old, words, buffer }) => {
          if (space === "shared") buffer.store(words.at(i).load());
          const place = space === "shared" ? buffer : words.at(i);
          const where = iota(i32, [40], { axis: 0 }).lt(31);
          old.at(i).store(place.atomic(fn, full(u64, [40], value), { where }));
        },
      ).kernel;
    for (const [fn, value, space, isLook] of [
      ["add", 0, "global", true],
      ["or", 0, "global", true],
      ["xor", 0, "global", true],
      ["and", 0, "global", false],
      ["exchange", 0, "global", false],
      ["add", 1, "global", false],
      ["add", 0, "shared", false],
    ] as const) {
      const body = looks(fn, value, space);
      const text = printPtx(emitMoved({ kernel: body }).module);
      expect(text.includes("ld.relaxed.gpu.global.b64"), `${fn} ${value}`).toBe(isLook);
      expect(text.includes("atom."), `${fn} ${value}`).toBe(!isLook);
      await expectSame({ kernel: body }, 1, `${fn} ${value}`);
    }
  });

  test("in warps of their own each warp updates", async () => {
    const { kernel: body } = kernel(
      {
        name: "alone",
        grid: { i: 1 },
        inputs: {},
        outputs: { old: tensor(i32, [4, 8]) },
        inouts: { counters: tensor(i32, [4]) },
      },
      ({ old, counters }) => {
        warps((warp) => {
          const before = counters.at(warp).atomicAdd(3);
          old.at(warp).store(before);
        });
      },
    );
    await expectSame({ kernel: body }, 1, "alone");
  });

  test.each([i16, u16, i32, u64])("$name is exchanged where it is as expected", async (dtype) => {
    const { kernel: body } = kernel(
      {
        name: "exchanged",
        grid: { i: 1 },
        inputs: { x: tensor(dtype, [40]), expected: tensor(dtype, [40]) },
        outputs: { old: tensor(dtype, [40]) },
        inouts: { memory: tensor(dtype, [40]) },
      },
      ({ x, expected, old, memory }) => {
        const now = memory.load();
        const guess = iota(i32, [40], { axis: 0 }).rem(2).eq(0).select(now, expected.load());
        old.store(memory.compareExchange(guess, x.load()));
      },
    );
    await expectSame({ kernel: body }, 2, dtype.name);
  });
});

describe.runIf(hasPtxas)("the assembler accepts", () => {
  test.each(Object.entries(functions))("%s", (fn, formats) => {
    const modules = formats.flatMap((dtype) =>
      (["global", "shared"] as const).flatMap((space) =>
        [true, false].map((wanted) => {
          const { kernel: body } = updateTile(dtype, fn as AtomicFunction, space, wanted);
          return emitMoved({ kernel: body }).module;
        }),
      ),
    );
    const [first] = modules;
    if (first === undefined) throw new Error("no formats");
    const declarations = modules.flatMap((module) => module.declarations);
    // All buffers have one name; the entries are told apart.
    const variables = declarations.filter((each) => each.kind === "variable").slice(0, 1);
    const entries = declarations
      .filter((each) => each.kind === "function")
      .map((each, index) => ({ ...each, name: `update${index}` }));
    const version = modules.map((module) => module.version).reduce((a, b) => (a > b ? a : b));
    const text = printPtx({
      ...first,
      version,
      files: ["update.ts"],
      declarations: [...variables, ...entries],
    });
    expect(assemble(text, "sm_90a")).toBe("");
  });
});
