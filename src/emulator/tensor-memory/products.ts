/** `tcgen05.mma`: its forms, what is checked when it is issued, and what it touches. */
import {
  tmemBanks,
  tmemPlacement,
  tmemRowLane,
} from "../../layout/algebra/tensor-memory-products.ts";
import type { TmemPlacement } from "../../layout/algebra/tensor-memory-products.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Issue } from "../asynchronous.ts";
import type {
  BlockView,
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  OperandView,
  Place,
} from "../collective.ts";
import { checkWritten, noteOnce, reportOnce } from "../reports.ts";
import { constantOf } from "../tensor-cores/operands.ts";
import { lanesOf } from "../asynchronous.ts";
import { decodeInstructionDescriptor, productKinds } from "./instruction-descriptor.ts";
import type { InstructionDescriptor, ProductOpcode } from "./instruction-descriptor.ts";
import { descriptorError } from "../tensor-cores/descriptor.ts";
import { submit } from "./issue.ts";
import { decodeMatrixDescriptor, matrixChunks, stretches } from "./matrix-descriptor.ts";
import type { MatrixShape } from "./matrix-descriptor.ts";
import { pairOf } from "./pairs.ts";
import { multiplyInTensorMemory } from "./multiply.ts";
import type { ProductCall, SharedMatrix } from "./multiply.ts";
import {
  metadataColumns,
  scaleColumns,
  shapeOfA,
  shapeOfB,
  stepBytes,
} from "./product-operands.ts";
import type { TensorPlace } from "./product-operands.ts";
import { laneGroup, splitAddress, tensorMemoryOf } from "./state.ts";
import type { TensorRange } from "./state.ts";
import { zeroColumns } from "./zero-columns.ts";

interface Collector {
  readonly buffer: string;
  readonly use: "fill" | "use" | "lastuse" | "discard";
}

interface ProductForm {
  readonly instruction: CollectiveInstruction;
  readonly opcode: ProductOpcode;
  readonly d: OperandView;
  readonly a: OperandView;
  readonly aInTensorMemory: boolean;
  readonly b: OperandView;
  readonly metadata: OperandView | undefined;
  readonly descriptor: OperandView;
  /** Lanes whose D is not written, a bit each. */
  readonly disabled: readonly OperandView[];
  readonly scalesA: OperandView | undefined;
  readonly scalesB: OperandView | undefined;
  readonly accumulates: OperandView;
  readonly scaleD: number;
  readonly zeroColumns: OperandView | undefined;
  readonly collector: Collector | undefined;
  readonly shiftsA: boolean;
}

function scalesOf(
  kind: ProductOpcode["kind"],
  modifiers: readonly string[],
): ProductOpcode["scales"] | undefined {
  if (!modifiers.includes("block_scale")) return kind.startsWith("mx") ? undefined : 0;
  const vector = modifiers.find((each) => /^(?:scale_vec::\dX|block\d+)$/.test(each));
  if (kind === "mxf8f6f4")
    return vector === undefined || vector === "scale_vec::1X" || vector === "block32"
      ? 1
      : undefined;
  if (kind === "mxf4")
    return vector === undefined || vector === "scale_vec::2X" || vector === "block32"
      ? 2
      : undefined;
  if (kind !== "mxf4nvf4") return undefined;
  if (vector === "scale_vec::2X" || vector === "block32") return 2;
  return vector === "scale_vec::4X" || vector === "block16" ? 4 : undefined;
}

function collectorOf(modifiers: readonly string[]): Collector | undefined {
  for (const modifier of modifiers) {
    const match = /^collector::(a|b[0-3])::(fill|use|lastuse|discard)$/.exec(modifier);
    if (match !== null)
      return { buffer: match[1] ?? "a", use: (match[2] ?? "discard") as Collector["use"] };
  }
  return undefined;
}

/** `[d], a, b {, [metadata]}, descriptor {, {disabled}} {, [scales a], [scales b]}, accumulates {, scale d | zeros}` */
export function product(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const kind = productKinds.find((each) => modifiers.includes(`kind::${each}`));
  if (kind === undefined) return undefined;
  const scales = scalesOf(kind, modifiers);
  if (scales === undefined) return undefined;
  const opcode: ProductOpcode = {
    kind,
    scales,
    isPair: modifiers.includes("cta_group::2"),
    isSparse: modifiers.includes("sp"),
    isWeightStationary: modifiers.includes("ws"),
  };
  const rest = [...operands];
  const take = (isThere: boolean): OperandView | undefined => (isThere ? rest.shift() : undefined);
  const [d, a, b] = [rest.shift(), rest.shift(), rest.shift()];
  const metadata = take(opcode.isSparse);
  const descriptor = rest.shift();
  const disabled = take(rest[0]?.operand.kind === "vector")?.elements ?? [];
  const [scalesA, scalesB] = [take(scales !== 0), take(scales !== 0)];
  const accumulates = rest.shift();
  const last = rest.shift();
  if (d === undefined || a === undefined || b === undefined) return undefined;
  if (descriptor === undefined || accumulates === undefined || rest.length > 0) return undefined;
  const form: ProductForm = {
    ...{ instruction, opcode, d, a, b, metadata, descriptor, disabled, scalesA, scalesB },
    aInTensorMemory: a.operand.kind === "address",
    accumulates,
    scaleD: opcode.isWeightStationary ? 0 : (constantOf(last) ?? 0),
    zeroColumns: opcode.isWeightStationary ? last : undefined,
    collector: collectorOf(modifiers),
    shiftsA: modifiers.includes("ashift"),
  };
  return {
    aligned: false,
    run: (call) => {
      issueProducts(form, call);
      return "done";
    },
  };
}

function issueProducts(form: ProductForm, call: CollectiveCall): void {
  const { machine, warp, mask } = call;
  const lanes = lanesOf(mask);
  if (machine.checks && lanes.length > 1)
    reportOnce(machine, form.instruction, {
      code: "TW8092",
      message: `${form.instruction.instruction.opcode} of ${warp.title} is issued by ${lanes.length} lanes`,
      location: form.instruction.location,
      expected: "one lane, such as elect.sync chooses",
      found: `${lanes.length} products, one a lane`,
    });
  for (const lane of lanes) issueProduct(form, call, lane);
}

function invalid(
  { instruction }: ProductForm,
  code: "TW8088" | "TW8084" | "TW8090",
  why: string,
  expected: string,
): TilewrightError {
  return new TilewrightError({
    code,
    message: `${instruction.instruction.opcode}: ${why}`,
    location: instruction.location,
    expected,
    found: why,
  });
}

/** A matrix in shared memory, whose chunks must lie in it. */
function matrixAt(
  { instruction }: ProductForm,
  bits: bigint,
  shape: MatrixShape,
  block: BlockView,
  machine: CollectiveCall["machine"],
): SharedMatrix {
  const problem = (why: string) => descriptorError(instruction, bits, why);
  const descriptor = decodeMatrixDescriptor(bits);
  if (typeof descriptor === "string") throw problem(descriptor);
  const isTf32 = shape.elementBytes === 4 && shape.major === "mn";
  if (isTf32 !== (descriptor.swizzle === "128 by 32"))
    throw problem(
      isTf32
        ? "tf32 with its rows side by side needs the swizzle of 128 by 32 bytes"
        : "the swizzle of 128 by 32 bytes is for tf32 with its rows side by side",
    );
  if (((bits >> 46n) & 7n) === 0n)
    noteOnce(machine, instruction, {
      code: "TW8073",
      message: `${instruction.instruction.opcode}: descriptor 0x${bits.toString(16)} has 0 in bits 46 to 48`,
      location: instruction.location,
      expected: "1 in bits 46 to 48, as PTX wants it",
      found: "0, which hardware takes as well",
    });
  const chunks = matrixChunks(descriptor, shape);
  const { length } = block.shared.bytes;
  const beyond = chunks.find((chunk) => chunk + 16 > length);
  if (beyond !== undefined)
    throw problem(`byte ${beyond} is beyond the ${length} bytes of shared memory`);
  return { chunks, shape };
}

/** Groups of 16 lanes from lanes. */
function groupsOf(lanes: Iterable<number>): number {
  let groups = 0;
  for (const lane of lanes) groups |= 1 << Math.floor(lane / laneGroup);
  return groups;
}

const everyGroup = 0xff;

function descriptorOf(form: ProductForm, word: number): InstructionDescriptor {
  const descriptor = decodeInstructionDescriptor(word, form.opcode);
  if (typeof descriptor === "string")
    throw invalid(
      form,
      "TW8088",
      `instruction descriptor 0x${word.toString(16).padStart(8, "0")}: ${descriptor}`,
      "a descriptor of a product that hardware has",
    );
  if (form.shiftsA && descriptor.m < 128)
    throw invalid(form, "TW8088", `M ${descriptor.m} with .ashift`, "M of 128 or 256");
  return descriptor;
}

type Places = Pick<ProductCall, "d" | "tensorA" | "metadata" | "scalesA" | "scalesB">;

/** Where operands lie in tensor memory, each where hardware lets it begin. */
function placesOf(
  form: ProductForm,
  call: CollectiveCall,
  lane: number,
  placement: TmemPlacement,
): Places {
  const at = (operand: OperandView | undefined, name: string): TensorPlace | undefined =>
    operand && placeOf(form, call, operand, lane, name);
  const d = placeOf(form, call, form.d, lane, "D");
  const tensorA = at(form.aInTensorMemory ? form.a : undefined, "A");
  const metadata = at(form.metadata, "the metadata");
  const scalesA = at(form.scalesA, "the scales of A");
  const scalesB = at(form.scalesB, "the scales of B");
  const starts = placement === "spread" ? [0, 16] : [0];
  if (!starts.includes(d.lane))
    throw invalid(form, "TW8084", `D begins at lane ${d.lane}`, `lane ${starts.join(" or ")}`);
  if ((tensorA ?? d).lane !== d.lane)
    throw invalid(
      form,
      "TW8084",
      `A begins at lane ${tensorA?.lane}, D at lane ${d.lane}`,
      "the same lane",
    );
  if (metadata !== undefined && (metadata.column % 2 !== 0 || metadata.lane !== d.lane))
    throw invalid(
      form,
      "TW8090",
      `metadata at lane ${metadata.lane}, column ${metadata.column}`,
      `an even column, from lane ${d.lane} on`,
    );
  for (const scales of [scalesA, scalesB])
    if (scales !== undefined && scales.lane !== 0)
      throw invalid(form, "TW8084", `scales begin at lane ${scales.lane}`, "lane 0");
  return { d, tensorA, metadata, scalesA, scalesB };
}

/** A product as its registers tell it. */
function productOf(form: ProductForm, call: CollectiveCall, lane: number): ProductCall {
  const { machine, warp } = call;
  const { instruction, opcode } = form;
  const { kind, isPair, isSparse, isWeightStationary } = opcode;
  const descriptor = descriptorOf(form, form.descriptor.word(warp, lane));
  const blocks = isPair ? pairOf(machine, instruction, warp).both : [warp.block];
  const placement = tmemPlacement({ m: descriptor.m, isPair, isWeightStationary, isSparse });
  const rows = descriptor.m / blocks.length;
  const mask = form.zeroColumns?.wide(warp, lane);
  const banks = tmemBanks(placement);
  const zeros = mask === undefined ? undefined : zeroColumns(mask, descriptor.n, banks);
  const columns = descriptor.n / blocks.length + (zeros?.shift ?? 0);
  const matrix = (operand: OperandView, shape: MatrixShape): SharedMatrix =>
    matrixAt(form, operand.wide(warp, lane), shape, warp.block, machine);
  return {
    ...placesOf(form, call, lane, placement),
    ...{ opcode, descriptor, placement, rows, blocks, zeros },
    a: form.aInTensorMemory ? undefined : matrix(form.a, shapeOfA(kind, descriptor, rows)),
    b: matrix(form.b, shapeOfB(kind, descriptor, columns, isSparse)),
    isSplit: isPair && descriptor.m === 128,
    scaleD: form.scaleD,
    shiftsA: form.shiftsA,
    accumulates: form.accumulates.word(warp, lane) !== 0,
    disabled: Uint32Array.from(form.disabled, (view) => view.word(warp, lane)),
  };
}

function matricesOf({ a, b }: ProductCall): readonly SharedMatrix[] {
  return a === undefined ? [b] : [a, b];
}

function issueProduct(form: ProductForm, call: CollectiveCall, lane: number): void {
  const { machine, warp } = call;
  const { instruction, opcode } = form;
  const product = productOf(form, call, lane);
  const { descriptor, placement, rows, blocks, d } = product;
  const banks = tmemBanks(placement);
  checkCollector(form, call, lane);
  const groups = groupsOf(
    Array.from({ length: rows * banks }, (_, at) =>
      tmemRowLane(placement, at % rows, Math.floor(at / rows)),
    ).map((own) => own + d.lane),
  );
  const issue = new Issue({ machine, warp, lane, instruction }, "async");
  for (const block of blocks)
    for (const { chunks } of matricesOf(product))
      for (const { offset, bytes } of stretches(chunks)) {
        const shared: Place = { views: block.shared, offset, block, space: "shared" };
        issue.record(shared, bytes, "read");
      }
  const { m, n } = descriptor;
  const key = `mma ${d.lane} ${d.column} ${m}x${n} ${opcode.kind} ${blocks[0]?.index}`;
  submit({
    ...{ machine, warp, lane, instruction, issue },
    kinds: [key, "mma"],
    follows: [key, "cp", "shift"],
    reads: blocks.flatMap((block) => readRanges(product, block, groups)),
    writes: blocks.map((block, rank) => ({
      ...{ block, column: d.column, columns: n / banks },
      groups: groups & ~disabledGroups(product.disabled, rank),
    })),
    run: () => {
      for (const { shared: views } of blocks)
        for (const { chunks } of matricesOf(product))
          for (const offset of chunks)
            checkWritten(machine, warp, instruction, { views, offset, space: "shared" }, 16);
      multiplyInTensorMemory({ machine, warp, instruction }, product);
    },
  });
}

function placeOf(
  form: ProductForm,
  { warp }: CollectiveCall,
  operand: OperandView,
  lane: number,
  name: string,
): TensorPlace {
  const place = splitAddress(operand.address(warp, lane));
  if (place.lane > 112)
    throw invalid(
      form,
      "TW8084",
      `${name} begins at lane ${place.lane}`,
      "a lane of tensor memory",
    );
  return place;
}

/** Groups of lanes in which nothing of D is written. */
function disabledGroups(disabled: Uint32Array, rank: number): number {
  let groups = 0;
  for (let group = 0; group < 8; group++) {
    const word = disabled[4 * rank + (group >> 1)] ?? 0;
    if (((word >>> (16 * (group & 1))) & 0xffff) === 0xffff) groups |= 1 << group;
  }
  return groups;
}

/** What a product reads of the tensor memory of a block, besides D. */
function readRanges(
  product: ProductCall,
  block: BlockView,
  groups: number,
): readonly TensorRange[] {
  const { tensorA, metadata, scalesA, scalesB, descriptor, opcode, rows, isSplit } = product;
  const { scales } = opcode;
  const ranges: TensorRange[] = [];
  if (tensorA !== undefined)
    ranges.push({ block, column: tensorA.column, columns: stepBytes / 4, groups });
  if (metadata !== undefined)
    ranges.push({ block, column: metadata.column, columns: metadataColumns, groups });
  const both = [
    { place: scalesA, of: rows, id: descriptor.idA, split: false },
    { place: scalesB, of: descriptor.n, id: descriptor.idB, split: isSplit },
  ];
  for (const { place, of, id, split } of both)
    if (place !== undefined) {
      const columns = scaleColumns(of, scales, id, split);
      ranges.push({ block, column: place.column, columns, groups: everyGroup });
    }
  return ranges;
}

/** The collector buffers hold what was filled into them, and nothing else. */
function checkCollector(
  { instruction, collector, opcode, a, b, aInTensorMemory }: ProductForm,
  { machine, warp }: CollectiveCall,
  lane: number,
): void {
  const { collectors } = tensorMemoryOf(warp.block);
  const buffer = collector?.buffer ?? (opcode.isWeightStationary ? "b0" : "a");
  const operand = buffer === "a" ? a : b;
  const matrix =
    buffer === "a" && aInTensorMemory ? a.address(warp, lane) : operand.wide(warp, lane);
  const key = `${opcode.kind} ${matrix}`;
  const use = collector?.use ?? "discard";
  if ((use === "use" || use === "lastuse") && collectors.get(buffer) !== key)
    reportOnce(machine, instruction, {
      code: "TW8091",
      message: `${instruction.instruction.opcode} of ${warp.title} uses collector buffer ${buffer}, which does not hold this matrix`,
      location: instruction.location,
      expected: `a product with collector::${buffer}::fill of the same matrix before it`,
      found: collectors.has(buffer) ? "another matrix" : "nothing",
    });
  if (use === "fill") collectors.set(buffer, key);
  else if (use !== "use") collectors.delete(buffer);
}
