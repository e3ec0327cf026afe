/** Forms of copies by the copy engine, of changes of their tensor maps, and of cluster launch control. */
import type { FormGroup } from "./form.ts";
import type { TargetSetName } from "./targets.ts";

const bytes = "mbarrier::complete_tx::bytes";

/** A form without and with the operand that a modifier brings, last of all operands so far. */
function maybe(form: string, modifier: string, operand: string): readonly string[] {
  const [name = "", modifiers = "", operands = ""] = form.split("|");
  return [form, `${name}|${modifiers} ${modifier} |${operands} ${operand}`];
}

const hinted = (form: string): readonly string[] => maybe(form, "L2::cache_hint", "b64");
const multicast = (form: string): readonly string[] =>
  maybe(form, "multicast::cluster", "u16").flatMap(hinted);

const dimensions = "1d/2d/3d/4d/5d";
/** Columns of im2col want a channel and two dimensions at least. */
const imageDimensions = "3d/4d/5d";

interface LoadMode {
  readonly modifiers: string;
  readonly map: string;
  readonly offsets: string;
}

const tileLoad: LoadMode = { modifiers: `${dimensions} tile?`, map: "[map*D]", offsets: "" };
const imageLoad: LoadMode = {
  modifiers: `${imageDimensions} im2col`,
  map: "[map*D]",
  offsets: "{u16*E}",
};
const gatherLoad: LoadMode = { modifiers: "2d tile::gather4", map: "[map*5]", offsets: "" };
const columnLoad = (modifier: string): LoadMode => ({
  modifiers: `${imageDimensions} ${modifier}`,
  map: "[map*D]",
  offsets: "{u16*2}",
});

/** Loads into a block of the cluster, or the own block, which has no multicast. */
function loads(
  { modifiers, map, offsets }: LoadMode,
  into: "shared::cluster" | "shared::cta",
  pair = "",
): readonly string[] {
  const form = `cp.async.bulk.tensor | ${modifiers} ${into} global ${bytes} ${pair} | [s] ${map} [s] ${offsets}`;
  return into === "shared::cluster" ? multicast(form) : hinted(form);
}

const pair = "cta_group::1/cta_group::2";
const everyMode = [
  ...[tileLoad, imageLoad, gatherLoad],
  ...[columnLoad("im2col::w"), columnLoad("im2col::w::128")],
];
const operations = "add/min/max/inc/dec/and/or/xor";
const store = "global shared::cta bulk_group";

function stores(name: string, operation: string): readonly string[] {
  return [
    `${name} | ${dimensions} ${operation} tile? ${store} | [map*D] [s]`,
    `${name} | ${imageDimensions} ${operation} im2col_no_offs ${store} | [map*D] [s]`,
  ].flatMap(hinted);
}

const reductions = [
  "add/min/max/inc/dec u32",
  "add/min/max s32/s64",
  "add/min/max u64",
  "and/or/xor b32/b64",
  "add f32/f64",
  "add noftz f16/bf16",
  "min/max f16/bf16",
];

const hopper = [
  ...multicast(`cp.async.bulk | shared::cluster global ${bytes} | [s] [s] bytes16 [s]`),
  `cp.async.bulk | shared::cluster shared::cta ${bytes} | [s] [s] bytes16 [s]`,
  ...hinted(`cp.async.bulk | ${store} | [s] [s] bytes16`),
  ...hinted("cp.async.bulk.prefetch | L2 global | [s] bytes16"),
  "cp.async.bulk.commit_group | |",
  "cp.async.bulk.wait_group | read? | i",
  ...reductions.flatMap((operation) => [
    ...hinted(`cp.reduce.async.bulk | ${store} ${operation} | [s] [s] bytes16`),
    `cp.reduce.async.bulk | shared::cluster shared::cta ${bytes} ${operation} | [s] [s] bytes16 [s]`,
  ]),
  ...loads(tileLoad, "shared::cluster"),
  ...loads(imageLoad, "shared::cluster"),
  ...stores("cp.async.bulk.tensor", ""),
  ...stores("cp.reduce.async.bulk.tensor", operations),
  ...hinted(`cp.async.bulk.prefetch.tensor | ${dimensions} L2 global tile? | [map*D]`),
  ...hinted(
    `cp.async.bulk.prefetch.tensor | ${imageDimensions} L2 global im2col | [map*D] {u16*E}`,
  ),
];

/** Fields of a tensor map with the values that they may take. */
function fields(places: readonly string[]): readonly string[] {
  return places.map((place) => {
    const [field = "", type = "", ...operands] = place.split(" ");
    return `tensormap.replace | tile ${field} global/shared::cta? b1024 ${type} | [s] ${operands.join(" ")}`;
  });
}

const mapFields: readonly (readonly [TargetSetName, string, readonly string[]])[] = [
  [
    "registers",
    "8.3",
    [
      "global_address b64 b64",
      "rank b32 u32",
      "box_dim b32 i0..4 u32",
      "global_dim b32 i0..4 u32",
      "element_stride b32 i0..4 u32",
      "global_stride b64 i0..4 b64",
      "elemtype b32 i0..12",
      "interleave_layout b32 i0..2",
      "swizzle_mode b32 i0..3",
      "fill_mode b32 i0..1",
    ],
  ],
  ["accelerated", "8.6", ["elemtype b32 i13..15", "swizzle_atomicity b32 i0..3"]],
  ["swizzle96", "8.8", ["swizzle_mode b32 i4..4"]],
];

const control = "clusterlaunchcontrol";

export const copyForms: readonly FormGroup[] = [
  { targets: "hopper", since: "8.0", forms: hopper },
  {
    targets: "hopper",
    since: "8.6",
    forms: [
      ...hinted(`cp.async.bulk | shared::cta global ${bytes} | [s] [s] bytes16 [s]`),
      ...loads(tileLoad, "shared::cta"),
      ...loads(imageLoad, "shared::cta"),
    ],
  },
  {
    targets: "blackwell",
    since: "8.6",
    forms: [
      ...hinted(`cp.async.bulk | ${store} | [s] [s] bytes16`).map((form) => {
        const [name = "", modifiers = "", operands = ""] = form.split("|");
        return `${name}|${modifiers} cp_mask |${operands} u16`;
      }),
      ...loads(gatherLoad, "shared::cta"),
      ...loads(columnLoad("im2col::w"), "shared::cta"),
      `${control}.try_cancel.async | shared::cta? ${bytes} b128 | [s] [s]`,
      `${control}.query_cancel.is_canceled | pred b128 | dp r128`,
      `${control}.query_cancel.get_first_ctaid | v4 b32 b128 | {d32_*4} r128`,
      ...["x", "y", "z"].map(
        (axis) => `${control}.query_cancel.get_first_ctaid::${axis} | b32 b128 | d32 r128`,
      ),
    ],
  },
  {
    targets: "accelerated",
    since: "8.6",
    forms: [
      `${control}.try_cancel.async | shared::cta? ${bytes} multicast::cluster::all b128 | [s] [s]`,
    ],
  },
  {
    targets: "tensorMemory",
    since: "8.6",
    forms: [
      ...loads(gatherLoad, "shared::cluster"),
      ...loads(columnLoad("im2col::w"), "shared::cluster"),
      ...loads(columnLoad("im2col::w::128"), "shared::cluster"),
      ...loads(columnLoad("im2col::w::128"), "shared::cta"),
      ...everyMode.flatMap((mode) => [
        ...loads(mode, "shared::cluster", pair),
        ...loads(mode, "shared::cta", pair),
      ]),
      ...hinted(`cp.async.bulk.tensor | 2d tile::scatter4 ${store} | [map*5] [s]`),
      ...hinted(
        `cp.reduce.async.bulk.tensor | 2d ${operations} tile::scatter4 ${store} | [map*5] [s]`,
      ),
      ...hinted("cp.async.bulk.prefetch.tensor | 2d L2 global tile::gather4 | [map*5]"),
      ...hinted(
        `cp.async.bulk.prefetch.tensor | ${imageDimensions} L2 global im2col::w/im2col::w::128 | [map*D] {u16*2}`,
      ),
    ],
  },
  ...mapFields.map(([targets, since, places]) => ({ targets, since, forms: fields(places) })),
];
