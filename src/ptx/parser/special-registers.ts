/** The names of PTX's special registers: %tid.x, %laneid, %clock64 and so on. */

const vectors = ["tid", "ntid", "ctaid", "nctaid"];
const clusterVectors = ["clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"];
const scalars = [
  "laneid",
  "warpid",
  "nwarpid",
  "smid",
  "nsmid",
  "gridid",
  "is_explicit_cluster",
  "cluster_ctarank",
  "cluster_nctarank",
  "lanemask_eq",
  "lanemask_le",
  "lanemask_lt",
  "lanemask_ge",
  "lanemask_gt",
  "clock",
  "clock_hi",
  "clock64",
  "globaltimer",
  "globaltimer_lo",
  "globaltimer_hi",
  "reserved_smem_offset_begin",
  "reserved_smem_offset_end",
  "reserved_smem_offset_cap",
  "reserved_smem_offset_0",
  "reserved_smem_offset_1",
  "total_smem_size",
  "aggr_smem_size",
  "dynamic_smem_size",
  "current_graph_exec",
];
const numbered = [
  ["pm", 8, ""],
  ["pm", 8, "_64"],
  ["envreg", 32, ""],
] as const;

const withElements = [...vectors, ...clusterVectors].flatMap((name) => [
  name,
  ...[..."xyzw"].map((element) => `${name}.${element}`),
]);
const withNumbers = numbered.flatMap(([name, count, end]) =>
  Array.from({ length: count }, (_, number) => `${name}${number}${end}`),
);
const names = new Set([...scalars, ...withElements, ...withNumbers].map((name) => `%${name}`));

export function isSpecialRegister(name: string): boolean {
  return names.has(name);
}
