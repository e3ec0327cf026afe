/** What a kernel costs: counted from the program, read off its PTX, and held against what a board can do. */
import { reportKernel } from "../../../../../src/cli/report/kernel-report.ts";
import { accessText, lostWavefronts } from "../../../../../src/cli/report/report-text.ts";
import { kernelCost } from "../../../../../src/ir/cost/index.ts";
import type { KernelCost } from "../../../../../src/ir/cost/index.ts";
import type { Kernel } from "../../../../../src/ir/node.ts";
import { walkOps } from "../../../../../src/ir/traverse.ts";
import type { Target, TargetName } from "../../../../../src/targets/target.ts";
import type { CostReport, Roofline } from "../../protocol.ts";
import type { SourceLines } from "../source-lines.ts";

/** The usual board of a target: operations and bytes a second, dense, as NVIDIA's data sheets give them. */
interface Board {
  readonly name: string;
  readonly bandwidth: number;
  readonly tensor: { readonly [bits: number]: number };
  readonly fma: number;
}

const boards: { readonly [T in TargetName]: Board } = {
  sm_80: {
    name: "A100 SXM 80 GB",
    bandwidth: 2.039e12,
    tensor: { 8: 624e12, 16: 312e12, 32: 156e12 },
    fma: 19.5e12,
  },
  sm_86: {
    name: "RTX 3090",
    bandwidth: 0.936e12,
    tensor: { 8: 284e12, 16: 71e12, 32: 35.6e12 },
    fma: 35.6e12,
  },
  sm_89: {
    name: "RTX 4090",
    bandwidth: 1.008e12,
    tensor: { 8: 661e12, 16: 165e12, 32: 82.6e12 },
    fma: 82.6e12,
  },
  sm_90a: {
    name: "H200 SXM",
    bandwidth: 4.8e12,
    tensor: { 8: 1979e12, 16: 989e12, 32: 494e12 },
    fma: 67e12,
  },
  sm_100a: {
    name: "B200",
    bandwidth: 8e12,
    tensor: { 8: 4500e12, 16: 2250e12, 32: 1100e12 },
    fma: 80e12,
  },
  sm_103a: {
    name: "B300",
    bandwidth: 8e12,
    tensor: { 8: 4500e12, 16: 2250e12, 32: 1100e12 },
    fma: 77e12,
  },
  sm_121a: {
    name: "GB10",
    bandwidth: 0.273e12,
    tensor: { 8: 250e12, 16: 62e12, 32: 31e12 },
    fma: 31e12,
  },
  sm_120a: {
    name: "RTX 5090",
    bandwidth: 1.792e12,
    tensor: { 8: 838e12, 16: 209e12, 32: 104.8e12 },
    fma: 104.8e12,
  },
};

/** The widest format of a matrix product's operands; undefined where there is no product. */
function productBits(kernel: Kernel): number | undefined {
  let bits: number | undefined;
  walkOps(kernel.body, (op) => {
    if (op.kind !== "dot" && op.kind !== "wgmma") return;
    const { type } = op.kind === "dot" ? op.operands.right : op.operands.b;
    if (type.kind === "tile" || type.kind === "ref") bits = Math.max(bits ?? 0, type.dtype.bits);
  });
  return bits;
}

function rooflineOf(kernel: Kernel, target: TargetName, cost: KernelCost): Roofline {
  const board = boards[target];
  const bits = productBits(kernel);
  const onTensorCores = bits === undefined ? undefined : board.tensor[Math.max(8, bits)];
  const peak = onTensorCores ?? board.fma;
  const bytes = cost.memoryBytes;
  const [arithmetic, memory] = [cost.flops / peak, bytes / board.bandwidth];
  return {
    board: board.name,
    bandwidth: board.bandwidth,
    peak,
    peakOf: onTensorCores === undefined ? "f32 arithmetic" : `tensor cores, ${bits} bits`,
    intensity: bytes === 0 ? Infinity : cost.flops / bytes,
    least: Math.max(arithmetic, memory),
    bound: arithmetic > memory ? "arithmetic" : "memory",
  };
}

export async function costReport(
  kernel: Kernel,
  target: Target & { readonly name: string },
  targetName: TargetName,
  dimensions: ReadonlyMap<string, number>,
  lines: SourceLines,
): Promise<CostReport> {
  const cost = kernelCost(kernel, dimensions);
  // No assembler runs in a browser, so nobody knows the registers.
  const report = await reportKernel(kernel.name, kernel, target, undefined);
  return {
    flops: cost.flops,
    transcendentals: cost.transcendentals,
    globalRead: cost.bytes.gmem.read,
    globalWritten: cost.bytes.gmem.written,
    sharedRead: cost.bytes.smem.read,
    sharedWritten: cost.bytes.smem.written,
    unknownLoops: cost.unknownLoops.map(({ location }) => lines.lineOf(location.position)),
    threads: report.threads,
    sharedBytes: report.sharedBytes,
    occupancy: report.occupancy,
    roofline: rooflineOf(kernel, targetName, cost),
    lines: report.lines.flatMap((each) => {
      const line = lines.lineOf({ file: each.file, line: each.line, column: 1 });
      if (line === undefined) return [];
      return [
        {
          line,
          instructions: each.instructions,
          products: each.wgmma,
          accesses: each.accesses.map(accessText).join(", "),
          conversions: each.conversions.reduce((sum, { cost: one, times }) => sum + one * times, 0),
          lostToBanks: lostWavefronts(each),
        },
      ];
    }),
  };
}
