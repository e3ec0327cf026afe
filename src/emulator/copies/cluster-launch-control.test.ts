/** Cluster launch control: who takes which cluster, and what goes wrong. Behaviours 43 and 44 of the tests of others. */
import { describe, expect, test } from "vitest";
import { targets } from "../../targets/target.ts";
import { runBlocks } from "../../../test/support/emulated-blocks.ts";
import type { BlockLaunch, BlockRun } from "../../../test/support/emulated-blocks.ts";

/** A GPU that holds three blocks, or clusters of two. */
const target = "sm_100a";
const small = { ...targets.sm_100a, processors: 3, blocksPerProcessor: 1 };
const pairs = { ...targets.sm_100a, processors: 3, blocksPerProcessor: 2 };

const module = ".extern .shared .align 16 .b8 sm[];";

/** Sets up a response at 0 and an mbarrier at 16 of `arrivals`, in %r1; %r0 is the thread, %r2 the phase. */
function setUp(arrivals: number): string {
  return `.reg .b128 %q; mov.u32 %r0, %tid.x; mov.u32 %r1, sm; mov.b32 %r2, 0; setp.ne.u32 %p0, %r0, 0;
    @!%p0 mbarrier.init.shared::cta.b64 [%r1+16], ${arrivals};
    fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;`;
}

const expectTx = "@!%p0 mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r1+16], 16;";

const tryCancel = (multicast = false): string =>
  `clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes${
    multicast ? ".multicast::cluster::all" : ""
  }.b128 [%r1], [%r1+16];`;

const wait = (label: string): string => `$${label}:
    mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1+16], %r2; @!%p1 bra $${label};
    xor.b32 %r2, %r2, 1; ld.shared.b128 %q, [%r1];`;

const isCanceled = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;";
const firstBlock = (axis: string): string =>
  `clusterlaunchcontrol.query_cancel.get_first_ctaid::${axis}.b32.b128 %r5, %q;`;

/** Each block asks once, and stores behind its index the block it was given, or 1000. */
const once = `${setUp(1)} ${expectTx} @!%p0 ${tryCancel()} ${wait("once")}
  ${isCanceled} mov.b32 %r5, 1000; @%p2 ${firstBlock("x")}
  mov.u32 %r6, %ctaid.x; mul.wide.u32 %d2, %r6, 4; add.s64 %d2, %d2, %d0;
  @!%p0 st.global.b32 [%d2], %r5; ret;`;

function run(launch: Omit<BlockLaunch, "target">, seed: number, gpu = small): BlockRun {
  const options = { target: gpu, seed, ...launch.options };
  return runBlocks({ module, sharedBytes: 64, ...launch, target, options });
}

describe("43: one block more than the GPU holds", () => {
  test.each([1, 2, 3, 4, 5])("one request succeeds, seed %i", (seed) => {
    const unwritten = 0xffff;
    const { arrays, result } = run(
      { body: once, arrays: [new Uint32Array(4).fill(unwritten)], blocks: 4 },
      seed,
    );
    expect(result.findings).toEqual([]);
    expect([...(arrays[0] ?? [])].sort((left, right) => left - right)).toEqual([
      ...[3, 1000, 1000],
      unwritten,
    ]);
    expect(arrays[0]?.[3]).toBe(unwritten);
  });

  test("blocks that nobody takes start once there is room", () => {
    const body =
      "mov.u32 %r6, %ctaid.x; mul.wide.u32 %d2, %r6, 4; add.s64 %d2, %d2, %d0; st.global.b32 [%d2], %r6;";
    const never = `${setUp(1)} setp.eq.u32 %p3, %r0, 77; @%p3 ${tryCancel()} ${body} ret;`;
    const { arrays } = run({ body: never, arrays: [new Uint32Array(9)], blocks: 9 }, 1);
    expect([...(arrays[0] ?? [])]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });
});

/** A loop over tiles: adds one at each tile, whoever has it; notes the order in which a block got its tiles. */
function persistent(cluster: 1 | 2): string {
  const isPair = cluster === 2;
  const asks = isPair ? "%r7" : "%r0";
  return `${setUp(1)} mov.u32 %r6, %ctaid.x; mov.u32 %r8, %cluster_ctarank; shl.b32 %r7, %r8, 5; add.s32 %r7, %r7, %r0;
  $tile:
    mul.wide.u32 %d2, %r6, 4; add.s64 %d2, %d2, %d0; @!%p0 red.relaxed.gpu.global.add.u32 [%d2], 1;
    fence.proxy.async; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ${expectTx} barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.eq.u32 %p3, ${asks}, 0; @%p3 ${tryCancel(isPair)} ${wait("next")}
    ${isCanceled} @!%p2 bra $end; ${firstBlock("x")} add.s32 %r6, %r5, %r8; bra $tile;
  $end: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;`;
}

describe("44: persistent blocks over more tiles than the GPU holds", () => {
  test.each([
    [1, small, 11],
    [2, pairs, 14],
  ] as const)(
    "in clusters of %i every tile is done once, under every seed",
    (cluster, gpu, blocks) => {
      for (let seed = 1; seed <= 5; seed++) {
        const { arrays, result } = run(
          { body: persistent(cluster), arrays: [new Uint32Array(blocks)], blocks, cluster },
          seed,
          gpu,
        );
        expect(result.findings, `seed ${seed}`).toEqual([]);
        expect([...(arrays[0] ?? [])], `seed ${seed}`).toEqual(Array(blocks).fill(1));
      }
    },
  );
});

test("the first block as a vector, whose last element is left open", () => {
  const body = `${setUp(1)} ${expectTx} @!%p0 ${tryCancel()} ${wait("once")} ${isCanceled}
    mov.u32 %r6, %ctaid.x; setp.ne.u32 %p3, %r6, 0; @!%p2 bra $end; @%p0 bra $end;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r5, %r6, %r7, %r8}, %q;
    st.global.v2.b32 [%d0], {%r5, %r6}; st.global.b32 [%d0+8], %r7; OPEN $end: ret;`;
  const text = (open: string): string => body.replace("OPEN", open);
  const { arrays, result } = run({ body: text(""), arrays: [new Uint32Array(4)], blocks: 4 }, 1);
  expect(result.findings).toEqual([]);
  expect([...(arrays[0] ?? [])]).toEqual([3, 0, 0, 0]);
  const open = run(
    {
      body: text("add.s32 %r8, %r8, 1; st.global.b32 [%d0+12], %r8;"),
      arrays: [new Uint32Array(4)],
      blocks: 4,
    },
    1,
  );
  expect(open.result.findings.map(({ code }) => code)).toEqual(["TW8012"]);
});

describe("what is wrong is found", () => {
  const codes = (body: string, blocks = 1): readonly string[] => {
    const launch = { body, arrays: [new Uint32Array(4)], blocks };
    try {
      return run(launch, 1).result.findings.map(({ code }) => code);
    } catch (error) {
      return [String((error as { readonly code?: string }).code)];
    }
  };

  test("the block of a request that failed", () => {
    const body = `${setUp(1)} ${expectTx} @!%p0 ${tryCancel()} ${wait("once")} ${firstBlock("x")} ret;`;
    expect(codes(body)).toEqual(["TW8076"]);
  });

  test("a request after one that failed", () => {
    const body = `${setUp(1)} ${expectTx} @!%p0 ${tryCancel()} ${wait("once")} ${isCanceled}
      bar.sync 0; fence.proxy.async; ${expectTx} @!%p0 ${tryCancel()} ${wait("again")} ret;`;
    expect(codes(body)).toEqual(["TW8077"]);
  });

  test("bits that no request has written", () => {
    const body = `${setUp(1)} mov.b64 %d2, 1; @!%p0 st.shared.v2.b64 [%r1], {%d2, %d2}; bar.sync 0; ld.shared.b128 %q, [%r1]; ${isCanceled} ret;`;
    expect(codes(body)).toEqual(["TW8076"]);
  });

  test("a response that is read before it is there", () => {
    const body = `${setUp(1)} ${expectTx} @!%p0 ${tryCancel()} @!%p0 ld.shared.b64 %d2, [%r1];
      ${wait("once")} ret;`;
    expect(codes(body)).toContain("TW8014");
  });

  test("bytes that the mbarrier does not expect", () => {
    const body = `${setUp(1)} @!%p0 mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r1+16], 8; @!%p0 ${tryCancel()} ${wait("once")} ret;`;
    expect(codes(body).length).toBe(1);
  });

  test("a response between 16 bytes", () => {
    const body = `${setUp(1)} ${expectTx} add.s32 %r1, %r1, 8; @!%p0 ${tryCancel()} ret;`;
    expect(codes(body)).toEqual(["TW8011"]);
  });
});
