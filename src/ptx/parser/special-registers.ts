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

const names = new Set<string>();
for (const name of scalars) names.add(`%${name}`);
for (const name of [...vectors, ...clusterVectors]) {
  names.add(`%${name}`);
  for (const element of "xyzw") names.add(`%${name}.${element}`);
}
for (const [name, count, end] of numbered)
  for (let number = 0; number < count; number++) names.add(`%${name}${number}${end}`);

export function isSpecialRegister(name: string): boolean {
  return names.has(name);
}
