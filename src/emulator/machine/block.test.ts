/** Where lanes and blocks are, in grids and blocks of three axes. */
import { expect, test } from "vitest";
import { targets } from "../../targets/target.ts";
import { EmulatedMemory, emulate } from "../index.ts";
import { parsePtx } from "../../ptx/parser/index.ts";

const names = ["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"];

test("lanes and blocks are counted along x first, then y, then z", () => {
  const [lanes, blocks] = [[5, 3, 3] as const, [2, 3, 2] as const];
  const [perBlock, count] = [45, 12];
  const text = `.version 8.0\n.target sm_90a\n.address_size 64
.visible .entry where(.param .u64 out)
{
.reg .b32 %r<16>; .reg .b64 %d<4>;
ld.param.u64 %d0, [out];
${names.map((name, at) => `mov.u32 %r${at}, ${name};`).join(" ")}
mad.lo.u32 %r8, %r2, 3, %r1; mad.lo.u32 %r8, %r8, 5, %r0;
mad.lo.u32 %r9, %r5, 3, %r4; mad.lo.u32 %r9, %r9, 2, %r3;
mad.lo.u32 %r8, %r9, ${perBlock}, %r8; mad.wide.u32 %d0, %r8, ${4 * names.length}, %d0;
${names.map((_, at) => `st.global.b32 [%d0+${4 * at}], %r${at};`).join(" ")}
ret;
}`;
  const memory = new EmulatedMemory();
  const bytes = 4 * names.length * perBlock * count;
  const out = memory.allocate(bytes);
  const parameters = [new Uint8Array(BigUint64Array.of(BigInt(out)).buffer)];
  const launch = { entry: "where", blocks, threads: lanes, sharedBytes: 0, parameters };
  const { findings } = emulate(parsePtx(text), launch, memory, { target: targets.sm_90a });
  expect(findings).toEqual([]);
  const words = [...new Uint32Array(memory.read(out, bytes).buffer)];
  const expected: number[] = [];
  for (let block = 0; block < count; block++)
    for (let lane = 0; lane < perBlock; lane++)
      expected.push(
        ...[lane % 5, Math.floor(lane / 5) % 3, Math.floor(lane / 15)],
        ...[block % 2, Math.floor(block / 2) % 3, Math.floor(block / 6)],
      );
  expect(words).toEqual(expected);
});

test("variables lie at multiples of their alignment, in shared and in parameter memory", () => {
  const text = `.version 8.0\n.target sm_90a\n.address_size 64
.visible .entry apart(.param .u8 flag, .param .u64 out, .param .b16 half, .param .b32 word)
{
.shared .b8 first; .shared .align 16 .b8 second[4]; .shared .b64 third;
.reg .b32 %r<8>; .reg .b64 %d<4>; .reg .b16 %h<2>;
ld.param.u64 %d0, [out]; ld.param.b32 %r0, [word]; ld.param.u8 %r1, [flag];
mov.u32 %r2, first; mov.u32 %r3, second; mov.u32 %r4, third;
${[0, 1, 2, 3, 4].map((at) => `st.global.b32 [%d0+${4 * at}], %r${at};`).join(" ")}
ret;
}`;
  const memory = new EmulatedMemory();
  const out = memory.allocate(20);
  const parameters = [
    Uint8Array.of(7),
    new Uint8Array(BigUint64Array.of(BigInt(out)).buffer),
    Uint8Array.of(1, 2),
    Uint8Array.of(0x78, 0x56, 0x34, 0x12),
  ];
  const launch = { entry: "apart", blocks: [1, 1, 1], threads: [1, 1, 1], sharedBytes: 0 } as const;
  const options = { target: targets.sm_90a };
  emulate(parsePtx(text), { ...launch, parameters }, memory, options);
  const [word, flag, first = 0, second = 0, third = 0] = new Uint32Array(
    memory.read(out, 20).buffer,
  );
  expect([word, flag]).toEqual([0x12345678, 7]);
  expect([second % 16, third % 8]).toEqual([0, 0]);
  expect(new Set([first, second, third]).size).toBe(3);
});
