import { describe, expect, test } from "vitest";
import { exampleKernels } from "../../../test/example-kernels.ts";
import { bf16, f32, f8e4m3fn } from "../../formats/dtype.ts";
import {
  accumulator,
  tensor,
  barrier,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  dot,
  kernel,
  loop,
  slice,
  smem,
  waitGroup,
  wgmma,
} from "../../lang/index.ts";
import type { KernelDefinition, Scalar } from "../../lang/index.ts";
import { allocate } from "../../layout/plan/allocate.ts";
import { placeKernel } from "../../layout/plan/place.ts";
import { runPasses } from "../../passes/pass-order.ts";
import { targets } from "../../targets/target.ts";
import type { TargetName } from "../../targets/target.ts";
import { guardBounds } from "../../lower/guard-bounds.ts";
import { groupProducts } from "../../lower/product-groups.ts";
import { insertBarriers } from "../../lower/barriers/index.ts";
import { placedKernel } from "../../layout/plan/placed-kernel.ts";
import { emitKernel } from "../emit/kernel.ts";
import { assemblerNotes, usageIn } from "./assembler-notes.ts";
import { noteText } from "./note.ts";
import type { PerformanceNote } from "./note.ts";
import { performanceNotes } from "./performance-notes.ts";

function notesOf(
  { kernel: traced }: KernelDefinition,
  target: TargetName = "sm_90a",
): readonly PerformanceNote[] {
  const placement = placeKernel(runPasses(traced), targets[target]);
  const placed = allocate(placedKernel(placement));
  return performanceNotes(
    placement,
    emitKernel(groupProducts(insertBarriers(guardBounds(placed)))).module,
  );
}

function codesOf(definition: KernelDefinition, target?: TargetName): readonly string[] {
  return notesOf(definition, target).map(({ code }) => code);
}

/** The one note that a kernel has. */
function onlyNote(definition: KernelDefinition, target?: TargetName): PerformanceNote {
  const notes = notesOf(definition, target);
  const [note] = notes;
  expect(notes.map(noteText)).toHaveLength(1);
  if (note === undefined) throw new Error("no note");
  expect(note.position?.file).toContain("notes.test.ts");
  return note;
}

describe("products", () => {
  const product = (rows: number, precision?: "tf32" | "ieee"): KernelDefinition => {
    const dtype = precision === undefined ? bf16 : f32;
    return kernel(
      {
        name: "product",
        inputs: { a: tensor(dtype, [rows, 64]), b: tensor(dtype, [64, 16]) },
        outputs: { out: tensor(f32, [rows, 16]) },
      },
      ({ a, b, out }) => out.store(dot(a.load(), b.load(), { ...(precision && { precision }) })),
    );
  };

  test("of few rows are made without tensor cores", () => {
    const note = onlyNote(product(4));
    expect(note.code).toBe("TW7501");
    expect(note.because).toContain("does not consist of fragments 16 × 8 × 16");
  });

  test("of fragments are not noted", () => {
    expect(codesOf(product(16))).not.toContain("TW7501");
  });

  test("of fragments are noted where tensor memory would add them up", () => {
    const note = notesOf(product(16), "sm_100a").find(({ code }) => code === "TW7516");
    expect(note?.message).toBe("this dot is computed by mma.sync, not by tcgen05");
    expect(note?.because).toBe("no tcgen05: it has 64 or 128 rows, not 16");
    expect(notesOf(product(64), "sm_100a").find(({ code }) => code === "TW7516")?.because).toMatch(
      /no loop carries its sum, and to store factors and wait takes longer/,
    );
    expect(codesOf(product(16), "sm_120a")).not.toContain("TW7516");
  });

  test("of FP8 in registers are noted for their shape alone", () => {
    const ofFp8 = (depth: number): KernelDefinition =>
      kernel(
        {
          name: "product",
          inputs: { a: tensor(f8e4m3fn, [64, depth]), b: tensor(f8e4m3fn, [64, depth]) },
          outputs: { out: tensor(f32, [64, 64]) },
        },
        ({ a, b, out }) => out.store(dot(a.load(), b.load().transpose())),
      );
    const note = notesOf(ofFp8(8)).find(({ code }) => code === "TW7501");
    expect(note?.because).toContain("does not consist of fragments 16 × 8 × 16");
    expect(note?.remedy).toContain("the depth of 16");
    expect(codesOf(ofFp8(16))).not.toContain("TW7501");
  });

  test("that are to be exact are not noted", () => {
    expect(codesOf(product(4, "ieee"))).not.toContain("TW7501");
    expect(codesOf(product(4, "tf32"))).toContain("TW7501");
  });
});

describe("accesses to global memory", () => {
  const rowsOf = (multipleOf: number, columns = 1024): KernelDefinition => {
    const [m, n] = [dim("m"), dim("n", { multipleOf })];
    return kernel(
      {
        name: "rows",
        grid: { i: m },
        inputs: { x: tensor(bf16, [m, n]) },
        outputs: { out: tensor(f32, [m]) },
      },
      ({ i, x, out }) => out.at(i).store(x.at(i, slice(0, columns)).load().cast(f32).sum()),
    );
  };

  test("are narrow where rows may begin anywhere", () => {
    const note = onlyNote(rowsOf(1));
    expect(note).toMatchObject({
      code: "TW7502",
      message: "load of x moves 2 bytes a thread at a time",
      because: "rows of n elements need not begin at a multiple of 16 bytes",
      remedy: 'say what n is a multiple of: dim("n", { multipleOf: 8 })',
    });
  });

  test("are as wide as can be once that is said", () => {
    expect(notesOf(rowsOf(8))).toEqual([]);
  });

  test("of a lane that has no more are not noted", () => {
    expect(notesOf(rowsOf(1, 128))).toEqual([]);
  });

  test("that begin anywhere say so", () => {
    const shifted = kernel(
      {
        name: "shifted",
        inputs: { x: tensor(f32, [4096]) },
        outputs: { out: tensor(f32, [1024]) },
      },
      ({ x, out }) => out.store(x.at(slice(1, 1024)).load()),
    );
    expect(onlyNote(shifted)).toMatchObject({
      code: "TW7502",
      because: "the window is not known to begin at a multiple of 16 bytes",
    });
  });

  test("of a product's result use half of each sector", () => {
    const stored = kernel(
      {
        name: "stored",
        inputs: { a: tensor(bf16, [64, 64]), b: tensor(bf16, [64, 64]) },
        outputs: { out: tensor(bf16, [64, 64]) },
        scratch: { left: smem(bf16, [64, 64]), right: smem(bf16, [64, 64]), ready: barrier() },
      },
      ({ a, b, out, left, right, ready }) => {
        copyAsync(a, left, { barrier: ready });
        copyAsync(b, right, { barrier: ready });
        ready.wait();
        const sum = wgmma(accumulator(f32, [64, 64]), left, right).wait();
        out.store(sum.cast(bf16).layoutCast("(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"));
      },
    );
    expect(onlyNote(stored)).toMatchObject({
      code: "TW7502",
      message: "store to out moves 4 bytes a thread at a time",
      because: expect.stringContaining("it uses 16") as string,
    });
  });

  test("by copies of lanes are noted where there is TMA", () => {
    const n = dim("n");
    const copied = kernel(
      {
        name: "copied",
        inputs: { x: tensor(bf16, [64, n]) },
        outputs: { out: tensor(bf16, [64, 64]) },
        scratch: { tile: smem(bf16, [64, 64]), ready: barrier() },
      },
      ({ x, out, tile, ready }) => {
        copyAsync(x.at(slice(0, 64), slice(0, 64)), tile, { barrier: ready });
        ready.wait();
        out.store(tile.load());
      },
    );
    expect(onlyNote(copied).message).toBe("this copy is made by threads, 2 bytes at a time");
    expect(notesOf(copied, "sm_80")).toEqual([]);
  });

  test("by copies of lanes that TMA would make but for where they begin", () => {
    const copied = (start: (i: Scalar<"i32">) => Scalar<"i32">): KernelDefinition =>
      kernel(
        {
          name: "copied",
          grid: { i: 4 },
          inputs: { x: tensor(bf16, [256, 64]) },
          outputs: { out: tensor(bf16, [256, 64]) },
          scratch: { tile: smem(bf16, [64, 64]) },
        },
        ({ i, x, out, tile }) => {
          tile.store(x.at(slice(i.mul(64), 64)).load());
          commitShared();
          copyAsync(tile, out.at(slice(start(i), 64)));
          commitGroup();
          waitGroup();
        },
      );
    const before = copied((i) => i.sub(1).mul(64));
    expect(onlyNote(before)).toMatchObject({
      code: "TW7512",
      because: "no tensor copy: it may begin before the array",
      remedy: expect.stringContaining(".maximum(0)") as string,
      position: { file: expect.stringContaining("notes.test.ts") as string },
    });
    expect(notesOf(before, "sm_80")).toEqual([]);
    expect(notesOf(copied((i) => i.sub(1).maximum(0).mul(64)))).toEqual([]);
    expect(notesOf(copied((i) => i.mul(64)))).toEqual([]);
  });
});

test.each([true, false])("a left factor that a loop holds in registers is noted: %s", (held) => {
  const repeated = kernel(
    {
      name: "repeated",
      inputs: { a: tensor(bf16, [64, 64]), b: tensor(bf16, [64, 64]) },
      outputs: { out: tensor(f32, [64, 64]) },
      scratch: { left: smem(bf16, [64, 64]), right: smem(bf16, [64, 64]), ready: barrier() },
    },
    ({ a, b, out, left, right, ready }) => {
      copyAsync(a, left, { barrier: ready });
      copyAsync(b, right, { barrier: ready });
      ready.wait();
      const factor = left.load();
      const sum = loop({ to: 5, carry: accumulator(f32, [64, 64]) }, (_, running) =>
        wgmma(running, held ? factor : left, right),
      );
      out.store(sum.wait());
    },
  );
  const notes = notesOf(repeated).filter(({ code }) => code === "TW7511");
  expect(notes.map(({ because }) => because)).toEqual(
    held ? [expect.stringMatching(/^its 16 registers are copied in every round/)] : [],
  );
});

test("tiles that lanes keep copies of are noted", () => {
  const kept = kernel(
    { name: "kept", inputs: { x: tensor(f32, [64]) }, outputs: { out: tensor(f32, [64]) } },
    ({ x, out }) => out.store(x.load().layoutCast("(R0 R1 R2 R3 R4 R5)").mul(2)),
  );
  expect(codesOf(kept)).toContain("TW7503");
});

test("conflicts of banks are noted", () => {
  const across = kernel(
    {
      name: "across",
      inputs: { x: tensor(f32, [32, 32]) },
      outputs: { out: tensor(f32, [32, 32]) },
      scratch: { tile: smem(f32, [32, 32], { layout: "shared()" }) },
    },
    ({ x, out, tile }) => {
      tile.store(x.load());
      out.store(tile.load().layoutCast("(L0 L1 L2 L3 L4 | R0 R1 R2 W0 W1)"));
    },
  );
  const notes = notesOf(across).filter(({ code }) => code === "TW7504");
  expect(notes).toHaveLength(1);
  expect(notes[0]?.message).toBe("load has conflicts of banks");
});

test("gemm, softmax and axpy have no notes", () => {
  for (const name of ["gemm", "softmax", "axpy"]) {
    const definition = exampleKernels[name];
    if (definition === undefined) throw new Error(`no example ${name}`);
    expect(notesOf(definition).map(noteText)).toEqual([]);
  }
});

describe("the assembler's words", () => {
  const log = [
    "ptxas info    : (C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.",
    "ptxas info    : (C7512) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the function 'gemm'",
    "ptxas info    : (C7599) Potential Performance Loss: something else",
    "ptxas info    : Function properties for gemm",
    "    48 bytes stack frame, 32 bytes spill stores, 64 bytes spill loads",
    "ptxas info    : Used 168 registers, used 4 barriers, 16 bytes smem",
  ].join("\n");

  test("are understood", () => {
    expect(usageIn(log)).toEqual({
      registers: 168,
      barriers: 4,
      spillStores: 32,
      spillLoads: 64,
      warnings: log.split("\n").slice(0, 3),
    });
  });

  test("become notes of the whole kernel", () => {
    const notes = assemblerNotes(usageIn(log));
    expect(notes.map(({ code }) => code)).toEqual(["TW7505", "TW7507", "TW7506", "TW7508"]);
    expect(notes[0]?.because).toBe("a thread writes 32 bytes and reads 64 back");
    expect(notes[1]?.because).toMatch(/^\(C7504\) Potential/);
    expect(notes[2]?.remedy).toContain("setRegisters");
    expect(notes.every(({ position }) => position === undefined)).toBe(true);
  });

  test("of registers that others define say what to leave alone", () => {
    const line =
      "(C7515) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions defining accumulator registers";
    expect(assemblerNotes(usageIn(line))).toMatchObject([
      { code: "TW7506", remedy: expect.stringContaining("nothing but wgmma") as string },
    ]);
  });

  test("that praise become none", () => {
    const quiet =
      "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nUsed 40 registers";
    expect(assemblerNotes(usageIn(quiet))).toEqual([]);
  });
});

test("a note is printed with its line and remedy", () => {
  const note: PerformanceNote = {
    code: "TW7502",
    message: "load of x moves 2 bytes a thread at a time",
    because: "rows of n elements need not begin at a multiple of 16 bytes",
    remedy: 'say what n is a multiple of: dim("n", { multipleOf: 8 })',
    position: { file: "norm.ts", line: 12, column: 31 },
  };
  expect(noteText(note)).toBe(
    [
      "TW7502: load of x moves 2 bytes a thread at a time",
      "  at norm.ts:12:31",
      "  because:  rows of n elements need not begin at a multiple of 16 bytes",
      '  remedy:   say what n is a multiple of: dim("n", { multipleOf: 8 })',
    ].join("\n"),
  );
});
