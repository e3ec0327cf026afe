/** Verifies what a kernel declares: grid, clusters, program threads, dimensions and parameters. */
import { lanesPerWarp, mostThreads, warpCounts } from "../../targets/target.ts";
import type { Kernel, KernelParameter } from "../node.ts";
import { dimensionsOf, shapeText, sizeText } from "../size.ts";
import type { Size } from "../size.ts";
import { typeText } from "../types.ts";
import { reject } from "./report.ts";

const mostAxes = 16;
/** Blocks of a cluster that hardware can be asked for at all; a target may promise fewer. */
const mostClusterBlocks = 16;

function firstRepeated(names: readonly string[]): string | undefined {
  return names.find((name, position) => names.indexOf(name) !== position);
}

function verifyGrid(kernel: Kernel): void {
  const names = kernel.grid.map(({ name }) => name);
  const repeated = firstRepeated(names);
  if (repeated !== undefined)
    reject(kernel, "TW2215", `the grid of ${kernel.name} has two axes ${repeated}`, {
      expected: "a name of its own for each axis",
      found: names.join(", "),
    });
  if (names.length > mostAxes)
    reject(kernel, "TW2215", `the grid of ${kernel.name} has too many axes`, {
      expected: `at most ${mostAxes}`,
      found: String(names.length),
    });
  for (const { name, extent } of kernel.grid)
    if (typeof extent === "number" && !(Number.isSafeInteger(extent) && extent > 0))
      reject(kernel, "TW2215", `grid axis ${name} of ${kernel.name} has no blocks`, {
        expected: "a positive integer",
        found: sizeText(extent),
      });
}

function verifyClusters(kernel: Kernel): void {
  for (const { name, extent, cluster } of kernel.grid) {
    if (!Number.isSafeInteger(cluster) || cluster < 1)
      reject(kernel, "TW2216", `the cluster along ${name} has ${cluster} blocks`, {
        expected: "a positive integer",
        found: String(cluster),
      });
    if (typeof extent === "number" && extent % cluster !== 0)
      reject(kernel, "TW2216", `the cluster along ${name} does not divide the grid`, {
        expected: `a divisor of ${extent}`,
        found: String(cluster),
      });
  }
  const blocks = kernel.grid.reduce((product, { cluster }) => product * cluster, 1);
  if (blocks > mostClusterBlocks)
    reject(kernel, "TW2216", `the clusters of ${kernel.name} are too large`, {
      expected: `at most ${mostClusterBlocks} blocks`,
      found: `${blocks} blocks`,
    });
}

function verifyThreads(kernel: Kernel): void {
  const { warps } = kernel;
  if (!warpCounts.includes(warps))
    reject(kernel, "TW2217", `the program threads of ${kernel.name} have ${warps} warps`, {
      expected: `one of ${warpCounts.join(", ")}`,
      found: String(warps),
    });
  const count = kernel.threads.length;
  const most = mostThreads(warps);
  if (count === 0 || count > most)
    reject(kernel, "TW2217", `${kernel.name} has ${count} program threads`, {
      expected: `1 to ${most}, of ${warps * lanesPerWarp} threads each`,
      found: String(count),
    });
  const repeated = firstRepeated(kernel.threads);
  if (repeated !== undefined)
    reject(kernel, "TW2217", `${kernel.name} has two program threads ${repeated}`, {
      expected: "a name of its own for each thread",
      found: kernel.threads.join(", "),
    });
}

/** Dimensions are declared once, and sizes repeat what was declared of them. */
function verifyDimensions(kernel: Kernel): void {
  const repeated = firstRepeated(kernel.dimensions.map(({ name }) => name));
  if (repeated !== undefined)
    reject(kernel, "TW2219", `${kernel.name} declares dimension ${repeated} twice`, {
      expected: "each dimension once",
      found: kernel.dimensions.map(({ name }) => name).join(", "),
    });
  for (const { name, multipleOf } of kernel.dimensions)
    if (!Number.isSafeInteger(multipleOf) || multipleOf < 1)
      reject(kernel, "TW2219", `dimension ${name} cannot be a multiple of ${multipleOf}`, {
        expected: "a positive integer",
        found: String(multipleOf),
      });
  for (const { extent } of kernel.grid) verifySize(kernel, extent);
}

function verifySize(kernel: Kernel, size: Size): void {
  for (const { name, multipleOf } of dimensionsOf(size)) {
    const declared = kernel.dimensions.find((dimension) => dimension.name === name);
    if (declared === undefined)
      return reject(kernel, "TW2011", `${kernel.name} declares no dimension ${name}`, {
        expected: `sizes of ${kernel.dimensions.map((each) => each.name).join(", ") || "numbers alone"}`,
        found: sizeText(size),
      });
    if (declared.multipleOf !== multipleOf)
      reject(kernel, "TW2219", `dimension ${name} promises different divisors`, {
        expected: `a multiple of ${declared.multipleOf}`,
        found: `a multiple of ${multipleOf}`,
      });
  }
}

function verifyParameter(kernel: Kernel, parameter: KernelParameter): void {
  const { name, role, value, strides } = parameter;
  const { type } = value;
  const fits =
    role === "scalar" ? type.kind === "scalar" : type.kind === "ref" && type.space === "gmem";
  if (!fits)
    reject(kernel, "TW2218", `${role} parameter ${name} of ${kernel.name} has another type`, {
      expected: role === "scalar" ? "a scalar" : "a ref to gmem",
      found: typeText(type),
    });
  if (type.kind !== "ref") return;
  for (const size of [...type.shape, ...(strides ?? [])]) verifySize(kernel, size);
  if (strides !== undefined && strides.length !== type.shape.length)
    reject(kernel, "TW2218", `parameter ${name} of ${kernel.name} needs one stride for each axis`, {
      expected: `${type.shape.length} strides for ${shapeText(type.shape)}`,
      found: shapeText(strides),
    });
}

function verifyParameters(kernel: Kernel): void {
  const repeated = firstRepeated(kernel.parameters.map(({ name }) => name));
  if (repeated !== undefined)
    reject(kernel, "TW2218", `${kernel.name} has two parameters ${repeated}`, {
      expected: "a name of its own for each parameter",
      found: kernel.parameters.map(({ name }) => name).join(", "),
    });
  const values = kernel.parameters.map(({ value }) => value);
  const inner = kernel.body.parameters;
  if (values.length !== inner.length || values.some((value, position) => value !== inner[position]))
    reject(kernel, "TW2218", `the parameters of ${kernel.name} are not those of its body`, {
      expected: values.map(({ id }) => `%${id}`).join(", "),
      found: inner.map(({ id }) => `%${id}`).join(", "),
    });
  for (const parameter of kernel.parameters) verifyParameter(kernel, parameter);
}

export function verifyHeader(kernel: Kernel): void {
  verifyGrid(kernel);
  verifyClusters(kernel);
  verifyThreads(kernel);
  verifyDimensions(kernel);
  verifyParameters(kernel);
}
