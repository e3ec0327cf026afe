import { describe, expect, test } from "vitest";
import { bf16, f32 } from "../formats/dtype.ts";
import { byteOffset, parseSharedLayout } from "../layout/algebra/shared-layout.ts";
import { targets } from "../targets/target.ts";
import { emulate } from "./emulate.ts";
import { EmulatedMemory } from "./memory.ts";
import { Naming } from "./naming.ts";
import type { LaunchNames } from "./naming.ts";
import { parsePtx } from "../ptx/parser/index.ts";
import { loadProgram } from "./program/load.ts";

const text = `
.version 8.0
.target sm_90a
.address_size 64
.shared .align 4 .b8 table[40];
.extern .shared .align 16 .b8 pool[];
.visible .entry k()
{
  .reg .b32 %r<2>;
  mov.u32 %r0, table;
  mov.u32 %r1, pool;
  ret;
}`;
const program = loadProgram(parsePtx(text), "k", { checks: false, marks: false, collectives: {} });

const layout = "shared(swizzle 128)";
const names: LaunchNames = {
  arrays: new Map(),
  buffers: [
    { name: "tile", offset: 1024, bytes: 8192, holds: { dtype: bf16, shape: [64, 64], layout } },
    { name: "full", offset: 9216, bytes: 32, holds: "barriers" },
    { name: "scratch of reduce", offset: 1024, bytes: 512 },
  ],
  program: {
    threads: ["load", "compute"],
    warps: 4,
    axes: [
      { name: "i", extent: 4, cluster: 2 },
      { name: "j", extent: 3, cluster: 1 },
    ],
  },
};

function namingOf(given?: LaunchNames, memory = new EmulatedMemory()): Naming {
  return new Naming(memory, program, given);
}

describe("warps", () => {
  test("of any PTX are numbered", () => {
    expect(namingOf().warp(5, 3)).toBe("warp 5 of block 3");
  });

  test("of a kernel belong to a thread; blocks of a cluster follow one another", () => {
    const naming = namingOf(names);
    expect(naming.warp(3, 0)).toBe("thread load (warp 3) of block (i = 0, j = 0)");
    expect(naming.warp(4, 1)).toBe("thread compute (warp 4) of block (i = 1, j = 0)");
    expect(naming.warp(4, 2)).toBe("thread compute (warp 4) of block (i = 0, j = 1)");
    expect(
      namingOf({ ...names, program: { threads: ["load"], warps: 4, axes: [] } }).warp(0, 0),
    ).toBe("thread load (warp 0)");
  });
});

describe("shared memory", () => {
  test("of any PTX has variables", () => {
    const naming = namingOf();
    expect(naming.shared(39)).toBe("byte 39 of table");
    expect(naming.shared(40)).toBe("byte 40 of shared memory");
    expect(naming.shared(60)).toBe("byte 12 of pool");
  });

  test("of a kernel has buffers, by element", () => {
    const naming = namingOf(names);
    const byte = byteOffset(parseSharedLayout(layout), [64, 64], 16, 9 * 64 + 17);
    const found = naming.shared(1024 + byte + 1);
    expect(found).toBe(`element [9, 17] of tile, byte ${byte + 1} of it`);
    expect(naming.shared(9216 + 20)).toBe("barrier 2 of full");
    expect(naming.shared(1024)).toBe(
      "element [0, 0] of tile, byte 0 of it or byte 0 of scratch of reduce",
    );
    expect(naming.shared(0)).toBe("byte 0 of shared memory");
  });
});

test("an access beyond shared memory names the variable and what there is", () => {
  const module = parsePtx(text.replace("ret;", "ld.shared.b32 %r0, [%r1+32]; ret;"));
  const launch = { entry: "k", blocks: [1, 1, 1], threads: [1, 1, 1], parameters: [] } as const;
  const options = { target: targets.sm_90a };
  const run = (sharedBytes: number): unknown =>
    emulate(module, { ...launch, sharedBytes }, new EmulatedMemory(), options);
  expect(() => run(32)).toThrow(
    "byte 32 of pool, beyond the 80 bytes of the block's shared memory",
  );
  expect(() => run(48)).not.toThrow();
});

describe("global memory", () => {
  test("has labels of allocations", () => {
    const memory = new EmulatedMemory();
    const plain = memory.allocate(100, "plain");
    const typed = memory.allocate(400);
    memory.allocate(4);
    const arrays = new Map([[typed, { name: "typed", dtype: f32, shape: [100] }]]);
    const naming = namingOf({ arrays }, memory);
    expect(naming.address(plain + 7)).toBe("byte 7 of plain of 100 bytes");
    expect(naming.address(plain + 100)).toBe("byte 100 of plain of 100 bytes");
    expect(naming.address(typed + 41)).toBe("element [10] of typed, f32[100]");
    expect(naming.address(typed + 400)).toBe("element 100 of typed, which has 100: f32[100]");
    expect(naming.address(typed - 4)).toBe("4 bytes before typed");
    expect(naming.address(plain - 512)).toBe("512 bytes before plain");
  });

  test("has the launch's arrays, by element", () => {
    const memory = new EmulatedMemory();
    const address = memory.allocate(4096);
    const arrays = new Map([[address, { name: "x", dtype: bf16, shape: [10, 20] }]]);
    const naming = namingOf({ ...names, arrays }, memory);
    expect(naming.address(address + 2 * 47)).toBe("element [2, 7] of x, bf16[10, 20]");
    expect(naming.address(address + 400)).toBe("element 200 of x, which has 200: bf16[10, 20]");
    expect(naming.address(address - 16)).toBe("16 bytes before x");
  });

  test("without allocations has no names", () => {
    expect(namingOf().address(0x7f00_0000_0000)).toBeUndefined();
    expect(namingOf().global(12)).toBe("byte 12 of global memory");
  });
});
