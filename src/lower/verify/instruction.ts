/** Whether the instruction of a product, or the way of a copy, can do it with these shapes, formats and windows. */
import type { AnyOp, Kernel, Op, PlacedFor, Value } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import { reject } from "../../ir/verify/report.ts";
import type { SharedLayout } from "../../layout/algebra/shared-layout.ts";
import { copyProblem, copyWindows } from "../../layout/model/copy-methods.ts";
import type { CopyMethod } from "../../layout/model/copy-methods.ts";
import { storedAs } from "../../layout/model/placed-types.ts";
import {
  mmaFormat,
  mmaProblem,
  scaledShapeProblem,
  operandProblem,
  tileOf,
  warpgroupProblem,
  wgmmaRows,
  wgmmaShapeProblem,
} from "../../layout/model/product-instructions.ts";
import type { Product } from "../../layout/model/product-instructions.ts";
import { mapTextsOf, tensorCopyOf } from "../../layout/model/tensor-maps.ts";
import { windowsOf } from "../../layout/model/windows.ts";
import type { Windows } from "../../layout/model/windows.ts";
import type { SharedWindow } from "../../layout/model/windows.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { walkAgents } from "./walk.ts";
import type { Agents } from "./walk.ts";
import { hasSumsInFlight, productInstructions } from "../../targets/product-instructions.ts";

export function verifyInstructions(kernel: Kernel, { target }: PlacedFor): void {
  const checker = new Checker(kernel, target);
  walkAgents(kernel, (op, agents) => {
    if (op.kind === "dot") checker.product(op, agents);
    if (op.kind === "scaled_dot") checker.scaledProduct(op, agents);
    if (op.kind === "wgmma") checker.wgmma(op, agents);
    if (op.kind === "copy_async") checker.copy(op);
    if (op.kind === "prefetch_maps") checker.prefetch(op);
  });
}

class Checker {
  readonly #windows: Windows;
  /** Maps that copies go by, for each array. */
  readonly #maps = new Map<Value, Set<string>>();
  readonly #target: Target;

  constructor(kernel: Kernel, target: Target) {
    this.#windows = windowsOf(kernel);
    this.#target = target;
    walkOps(kernel.body, (op) => {
      if (op.kind !== "copy_async" || op.attributes.map === undefined) return;
      const { root } = copyWindows(op, this.#windows).global;
      const maps = this.#maps.get(root) ?? new Set();
      for (const map of mapTextsOf(op.attributes.map)) maps.add(map);
      this.#maps.set(root, maps);
    });
  }

  product(op: Op<"dot">, agents: Agents): void {
    const { instruction = "" } = op.attributes;
    const { left, right } = op.operands;
    const rules: { readonly [I in Product["instruction"]]: () => string | undefined } = {
      wgmma: () =>
        wgmmaShapeProblem(op, this.#target, agents.warps) ??
        this.#windowProblem(left, "left", agents) ??
        this.#windowProblem(right, "right", agents),
      "mma.sync": () => mmaProblem(op) ?? unconvertedProblem(op) ?? warpsProblem(op, agents),
      fma: () => undefined,
    };
    if (!(instruction in rules))
      reject(op, "TW6206", `there is no instruction ${instruction}`, {
        expected: Object.keys(rules).join(", "),
        found: instruction,
      });
    refuse(op, instruction, rules[instruction as Product["instruction"]]());
  }

  scaledProduct(op: Op<"scaled_dot">, agents: Agents): void {
    const problem = scaledShapeProblem(op, this.#target) ?? warpsProblem(op, agents);
    refuse(op, productInstructions["mma.sync.block_scale"].name, problem);
  }

  wgmma(op: Op<"wgmma">, agents: Agents): void {
    const { a, b } = op.operands;
    const missing = hasSumsInFlight(this.#target) ? undefined : "the target has none";
    const problem =
      missing ??
      wholeGroups(op, agents) ??
      this.#windowProblem(a, "left", agents) ??
      this.#windowProblem(b, "right", agents);
    refuse(op, productInstructions.wgmma.name, problem);
  }

  copy(op: Op<"copy_async">): void {
    const { by = "" } = op.attributes;
    const sides = copyWindows(op, this.#windows);
    const problem = copyProblem(op, by as CopyMethod["method"], {
      sides,
      layout: this.#stored(sides.shared),
      target: this.#target,
    });
    refuse(op, by, problem ?? this.#mapProblem(op));
  }

  /** Whether copies go by the maps that are asked for. */
  prefetch(op: Op<"prefetch_maps">): void {
    const known = this.#maps.get(this.#windows.of(op.operands.ref).root);
    for (const map of op.attributes.maps ?? [])
      if (known?.has(map) !== true)
        reject(op, "TW6206", `prefetch_maps asks for a map that no copy goes by: ${map}`, {
          expected: [...(known ?? [])].join(", ") || "no map",
          found: map,
        });
  }

  #mapProblem(op: Op<"copy_async">): string | undefined {
    if (op.attributes.by !== "tensor") return undefined;
    const { text } = tensorCopyOf(op, this.#windows);
    return op.attributes.map === text ? undefined : `its map is ${text}`;
  }

  /** Why wgmma cannot read the operand from shared memory; left operands may be tiles. */
  #windowProblem(value: Value, side: "left" | "right", { warps }: Agents): string | undefined {
    if (value.type.kind !== "ref")
      return side === "left" ? undefined : "its right operand is in registers";
    const window = this.#windows.of(value);
    if (window.space === "gmem") return `its ${side} operand is in global memory`;
    return operandProblem(window, this.#stored(window), side, warps);
  }

  #stored({ root }: SharedWindow): SharedLayout {
    const layout = storedAs(this.#windows.definitions.get(root));
    if (layout === undefined) throw new Error(`%${root.id} is not stored in any way`);
    return layout;
  }
}

function wholeGroups({ results: [result] }: Op<"wgmma">, { warps }: Agents): string | undefined {
  if (warps < warpsPerGroup) return warpgroupProblem(warps);
  const [rows = 0] = result?.type.kind === "inflight" ? result.type.shape : [];
  const whole = rows % wgmmaRows(warps) === 0;
  return whole ? undefined : `${rows} rows are no multiple of ${wgmmaRows(warps)}`;
}

/** mma.sync takes FP8, FP4 and integers of 4 bits only after they were converted. */
function unconvertedProblem({ operands: { left, right } }: Op<"dot">): string | undefined {
  const found = [left, right].find((factor) => tileOf(factor).dtype !== mmaFormat(factor));
  return found && `it takes ${tileOf(found).dtype.name} as ${mmaFormat(found).name}`;
}

/** The grid of warps covers the tile and has the warps that there are. */
function warpsProblem(
  { attributes, results: [result] }: Op<"dot"> | Op<"scaled_dot">,
  { warps: most }: Agents,
) {
  const [rows = 0, columns = 0] = attributes.warps ?? [];
  const [m = 0, n = 0] = result?.type.kind === "tile" ? result.type.shape : [];
  const fits = rows * columns >= 1 && rows * columns <= most;
  return fits && m % (16 * rows) === 0 && n % (8 * columns) === 0
    ? undefined
    : `a grid of ${rows} by ${columns} warps does not make [${m}, ${n}]`;
}

function refuse(op: AnyOp, instruction: string, problem: string | undefined): void {
  if (problem !== undefined)
    reject(op, "TW6206", `${op.kind} cannot be made by ${instruction}: ${problem}`, {
      expected: `what ${instruction} takes`,
      found: problem,
    });
}
