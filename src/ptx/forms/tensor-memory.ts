/** Forms of `tcgen05`: tensor memory, its loads and stores, its products, and what orders them. */
import type { FormGroup } from "./form.ts";

const group = "cta_group::1/cta_group::2";
const whole = "sync aligned";
/** Assemblers do not ask loads and stores for it. */
const warp = "sync aligned?";

/** Registers of a thread for each of xN, and the largest N: 128 registers at most. */
const loadShapes: readonly (readonly [shape: string, registers: number])[] = [
  ["32x32b", 1],
  ["16x64b", 1],
  ["16x128b", 2],
  ["16x256b", 4],
];

function repeats(registers: number, least = 1): string {
  return [1, 2, 4, 8, 16, 32, 64, 128]
    .filter((count) => count >= least && count * registers <= 128)
    .map((count) => `x${count}`)
    .join("/");
}

const loads = [
  ...loadShapes.flatMap(([shape, registers]) => {
    const modifiers = `${warp} ${shape} ${repeats(registers)}`;
    const vector = registers === 1 ? "N" : `${registers}N`;
    return [
      `tcgen05.ld | ${modifiers} pack::16b? b32 | {d32*${vector}} [t]`,
      `tcgen05.st | ${modifiers} unpack::16b? b32 | [t] {b32*${vector}}`,
    ];
  }),
  `tcgen05.ld | ${warp} 16x32bx2 xN pack::16b? b32 | {d32*N} [t] i`,
  `tcgen05.st | ${warp} 16x32bx2 xN unpack::16b? b32 | [t] i {b32*N}`,
];

const loadReductions = ["min/max abs? NaN? f32", "min/max u32/s32"].flatMap((operation) => {
  const modifiers = `${warp} ${repeats(1, 2)} ${operation}`;
  return [
    `tcgen05.ld.red | 32x32b ${modifiers} | {d32*N} d32 [t]`,
    `tcgen05.ld.red | 16x32bx2 ${modifiers} | {d32*N} d32 [t] i`,
  ];
});

const collectorOfA = (uses: readonly string[]): string =>
  `${uses.map((use) => `collector::a::${use}`).join("/")}?`;
const anyUse = collectorOfA(["fill", "use", "lastuse", "discard"]);
const lastUse = collectorOfA(["lastuse", "discard"]);
const collectorOfB = `${[0, 1, 2, 3]
  .flatMap((buffer) =>
    ["fill", "use", "lastuse", "discard"].map((use) => `collector::b${buffer}::${use}`),
  )
  .join("/")}?`;

/** Lanes that a product does not write, a bit each: four words in each block of the pair. */
const lanesOf = [
  ["cta_group::1", "{b32*4}?"],
  ["cta_group::2", "{b32*8}?"],
] as const;

/** Products without scales, of dense or sparse A; `sum` is what may follow the predicate. */
function plainProducts(kinds: string, sum = ""): readonly string[] {
  return [
    { sparsity: "", metadata: "" },
    { sparsity: "sp", metadata: "[t]" },
  ].flatMap(({ sparsity, metadata }) =>
    lanesOf.flatMap(([blocks, lanes]) => {
      const modifiers = `${sparsity} ${blocks} ${kinds}`;
      const behind = `u64 ${metadata} u32 ${lanes} p ${sum}`;
      return [
        `tcgen05.mma | ${modifiers} ${anyUse} | [t] u64 ${behind}`,
        `tcgen05.mma | ${modifiers} ${anyUse} | [t] [t] ${behind}`,
        `tcgen05.mma | ${modifiers} ashift ${lastUse} | [t] [t] ${behind}`,
      ];
    }),
  );
}

function oneWarpProducts(kinds: string): readonly string[] {
  const modifiers = `cta_group::1 ${kinds} ${collectorOfB}`;
  return ["u64", "[t]"].flatMap((a) => [
    `tcgen05.mma.ws | ${modifiers} | [t] ${a} u64 u32 p u64?`,
    `tcgen05.mma.ws | sp ${modifiers} | [t] ${a} u64 [t] u32 p u64?`,
  ]);
}

function scaledProducts(modifiers: string): readonly string[] {
  return ["u64", "[t]"].map(
    (a) => `tcgen05.mma | ${group} ${modifiers} block_scale ${anyUse} | [t] ${a} u64 u32 [t] [t] p`,
  );
}

function sparseScaledProducts(modifiers: string): readonly string[] {
  return ["u64", "[t]"].map(
    (a) =>
      `tcgen05.mma | sp ${group} ${modifiers} block_scale ${anyUse} | [t] ${a} u64 [t] u32 [t] [t] p`,
  );
}

const floatKinds = "kind::f16/kind::tf32/kind::f8f6f4";

const copies = [
  "128x256b",
  "4x256b",
  "128x128b",
  "64x128b warpx2::02_13/warpx2::01_23",
  "32x128b warpx4",
].flatMap((shape) => [
  `tcgen05.cp | ${group} ${shape} | [t] u64`,
  `tcgen05.cp | ${group} ${shape} b8x16 b6x16_p32/b4x16_p64 | [t] u64`,
]);

export const tensorMemoryForms: readonly FormGroup[] = [
  {
    targets: "tensorMemory",
    since: "8.6",
    forms: [
      `tcgen05.alloc | ${group} ${whole} shared::cta? b32 | [s] columns`,
      `tcgen05.dealloc | ${group} ${whole} b32 | u32 columns32`,
      `tcgen05.relinquish_alloc_permit | ${group} ${whole} |`,
      ...loads,
      `tcgen05.wait::ld | ${whole} |`,
      `tcgen05.wait::st | ${whole} |`,
      "tcgen05.fence::before_thread_sync | |",
      "tcgen05.fence::after_thread_sync | |",
      ...plainProducts(floatKinds),
      ...oneWarpProducts(floatKinds),
      ...scaledProducts("kind::mxf8f6f4"),
      ...scaledProducts("kind::mxf4"),
      ...sparseScaledProducts("kind::mxf8f6f4"),
      ...copies,
      `tcgen05.commit | ${group} mbarrier::arrive::one shared::cluster? b64 | [s]`,
      `tcgen05.commit | ${group} mbarrier::arrive::one shared::cluster? multicast::cluster b64 | [s] r16`,
    ],
  },
  {
    targets: "tensorMemory",
    since: "8.8",
    forms: [
      ...scaledProducts("kind::mxf8f6f4 block32"),
      ...scaledProducts("kind::mxf4 block32"),
      ...scaledProducts("kind::mxf4nvf4 block16/block32"),
      ...sparseScaledProducts("kind::mxf8f6f4 block32"),
    ],
  },
  {
    targets: "scaledSums",
    since: "8.6",
    forms: plainProducts("kind::f16/kind::tf32", "i0..15"),
  },
  {
    targets: "integerProducts",
    since: "8.6",
    forms: [...plainProducts("kind::i8"), ...oneWarpProducts("kind::i8")],
  },
  { targets: "loadReductions", since: "8.8", forms: loadReductions },
  {
    targets: "tensorMemoryExact",
    since: "8.6",
    forms: [
      `tcgen05.shift | ${group} down | [t]`,
      ...scaledProducts("kind::mxf8f6f4 scale_vec::1X"),
      ...scaledProducts("kind::mxf4 scale_vec::2X"),
      ...sparseScaledProducts("kind::mxf8f6f4 scale_vec::1X"),
      ...sparseScaledProducts("kind::mxf4 scale_vec::2X?"),
    ],
  },
  {
    targets: "tensorMemoryExact",
    since: "8.7",
    forms: [
      ...scaledProducts("kind::mxf4nvf4 scale_vec::2X/scale_vec::4X"),
      ...sparseScaledProducts("kind::mxf4nvf4 scale_vec::2X/scale_vec::4X"),
    ],
  },
  {
    targets: "tensorMemoryExact",
    since: "8.8",
    forms: [
      ...sparseScaledProducts("kind::mxf4 block32"),
      ...sparseScaledProducts("kind::mxf4nvf4 block16/block32"),
    ],
  },
];
