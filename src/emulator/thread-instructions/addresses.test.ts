/** Addresses of shared memory carry the rank of their block, as they do on an H200. */
import { expect, test } from "vitest";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const words = 8;

function repeated(count: number, value: number): readonly number[] {
  return Array.from({ length: count }, () => value);
}

/** What a body leaves in %r10 … of lane 0, for each of the two blocks of a cluster. */
function ofBlocks(body: string): readonly (readonly number[])[] {
  const stores = Array.from(
    { length: words },
    (_, at) => `st.global.b32 [%d40+${4 * at}], %r${10 + at};`,
  );
  const clear = Array.from({ length: words }, (_, at) => `mov.b32 %r${10 + at}, 0;`);
  const { arrays, codes } = runPtx({
    body: `${clear.join(" ")} ${body} mul.wide.u32 %d40, %rank, ${4 * words}; add.u64 %d40, %d40, %out;
      ${stores.join(" ")}`,
    arrays: { out: 2 * 4 * words },
    threads: 1,
    blocks: 2,
    cluster: 2,
  });
  expect(codes).toEqual([]);
  const all = [...new Uint32Array(arrays["out"]?.slice().buffer ?? new ArrayBuffer(0))];
  return [all.slice(0, words), all.slice(words)];
}

test("a block's own addresses carry its rank, whichever way they are made", () => {
  const found = ofBlocks(`
    .shared .align 16 .b8 own[16];
    mov.u32 %r10, own; mov.u64 %d1, own; cvt.u32.u64 %r11, %d1;
    cvta.shared.u64 %d2, %d1; cvta.to.shared.u64 %d3, %d2; cvt.u32.u64 %r12, %d3;
    mapa.shared::cluster.u32 %r13, %r10, %rank; mapa.shared::cluster.u32 %r14, own, %rank;
    getctarank.shared::cluster.u32 %r15, %r10; getctarank.u64 %r16, %d2;
    isspacep.shared %p0, %d2; selp.b32 %r17, 1, 0, %p0;`);
  expect(found).toEqual([0, 1].map((rank) => [...repeated(5, rank << 24), rank, rank, 1]));
});

test("whatever makes an address, it leads to the same memory", () => {
  const body = `
    .shared .align 16 .b8 own[64];
    mov.u32 %r0, own; mov.u64 %d1, own; cvta.shared.u64 %d2, %d1; add.u32 %r1, %rank, 100;
    st.shared.b32 [own+4], %r1; ld.shared.b32 %r10, [%r0+4]; ld.b32 %r11, [%d2+4];
    ld.shared::cta.b32 %r12, [%d1+4]; ld.shared::cluster.b32 %r13, [%r0+4];
    mapa.shared::cluster.u32 %r2, %r0, %rank; ld.shared::cluster.b32 %r14, [%r2+4];
    atom.shared.add.u32 %r15, [%r0+4], 1; atom.add.u32 %r16, [%d2+4], 1; ld.shared.b32 %r17, [own+4];`;
  expect(ofBlocks(body)).toEqual(
    [100, 101].map((value) => [...repeated(5, value), value, value + 1, value + 2]),
  );
});

test("an address that is shifted into a narrower field takes the rank along", () => {
  const body = `.shared .align 1024 .b8 own[1024]; mov.u32 %r0, own; add.u32 %r0, %r0, 512;
    shr.u32 %r10, %r0, 4; bfe.u32 %r11, %r0, 4, 14;`;
  expect(ofBlocks(body).map(([shifted, masked]) => [shifted, masked])).toEqual([
    [32, 32],
    [(1 << 20) + 32, 32],
  ]);
});

test.each(["ld.shared.b32 %r3, [%r2];", "st.shared.b32 [%r2], 1;", "red.shared.add.u32 [%r2], 1;"])(
  "%s of another block's memory needs shared::cluster",
  (access) => {
    const run = (text: string): readonly string[] =>
      runPtx({
        body: `.shared .align 4 .b32 own; st.shared.b32 [own], 5; barrier.cluster.arrive; barrier.cluster.wait;
          setp.ne.u32 %p1, %rank, 0; mov.u32 %r1, own; xor.b32 %r0, %rank, 1; mapa.shared::cluster.u32 %r2, %r1, %r0;
          @%p1 ${text} barrier.cluster.arrive; barrier.cluster.wait;`,
        threads: 1,
        blocks: 2,
        cluster: 2,
      }).codes;
    expect(run(access)).toEqual(["TW8010"]);
    expect(run(access.replace("shared.", "shared::cluster."))).toEqual([]);
  },
);
