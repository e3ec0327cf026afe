/** `mma.sync`: a product of matrices that a warp holds in its registers. */
import type { Collective, CollectiveCall, CollectiveInstruction } from "../collective.ts";
import { doubleProduct } from "./doubles.ts";
import { isProduct, operandBits } from "./forms.ts";
import type { ProductShape } from "./forms.ts";
import {
  gatherColumns,
  gatherHalves,
  gatherRows,
  gatherWords,
  scatterHalves,
  scatterWords,
} from "./fragments.ts";
import { isSparse, metadataOf, readMetadata } from "./metadata.ts";
import type { Metadata } from "./metadata.ts";
import { mmaOfKind } from "./mma-kinds.ts";
import { multiplyBytes, multiplySparse } from "./multiply.ts";
import type { ProductForm } from "./multiply.ts";
import {
  layoutsOf,
  parseShape,
  productForm,
  productTypes,
  readRegisters,
  registersOf,
  writeRegisters,
} from "./operands.ts";
import type { Registers } from "./operands.ts";
import { quadProduct } from "./quads.ts";
import { sparseIndicesOf } from "./sparse.ts";

/** Bits that a register of all lanes has. */
const registerBits = 1024;
const columns = 8;

interface MmaForm {
  readonly instruction: CollectiveInstruction;
  readonly product: ProductForm;
  readonly rows: 8 | 16;
  /** Bytes of k in a row of A, and in a column of B: twice as many where A is sparse. */
  readonly rowBytes: number;
  readonly columnBytes: number;
  readonly registers: readonly [d: Registers, a: Registers, b: Registers, c: Registers];
  readonly metadata: Metadata | undefined;
}

/** `mma{.sp}.sync.aligned.shape.row.col.… d, a, b, c {, metadata, selector}` */
export function mma(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  if (modifiers.some((modifier) => modifier.startsWith("kind::"))) return mmaOfKind(instruction);
  const shape = parseShape(modifiers);
  const [d, a, b, c] = operands.map(registersOf);
  if (d === undefined || a === undefined || b === undefined || c === undefined) return undefined;
  if (shape === undefined) return undefined;
  const [, typeA] = productTypes(modifiers);
  if (shape.m === 8 && shape.k === 4 && typeA === "f16") return quadProduct(instruction);
  if (layoutsOf(modifiers) !== "row col") return undefined;
  if (typeA === "f64") return doubleProduct(shape, modifiers, [d, a, b, c]);
  const form = formOf(instruction, shape, [d, a, b, c]);
  return form && { aligned: true, run: (call) => run(form, call) };
}

function formOf(
  instruction: CollectiveInstruction,
  shape: ProductShape,
  registers: MmaForm["registers"],
): MmaForm | undefined {
  const { modifiers, operands } = instruction;
  const { m, n, k } = shape;
  const [, a, b] = registers;
  const [typeD, , , typeC] = productTypes(modifiers);
  const product = productForm(modifiers, "warp");
  const sparse = isSparse(modifiers);
  if (product === undefined || typeD !== typeC) return undefined;
  if (!isProduct({ unit: product.unit, sparse }, product, shape)) return undefined;
  const metadata = sparse
    ? metadataOf(modifiers, product.a, k, operands[4], operands[5])
    : undefined;
  if (sparse && metadata === undefined) return undefined;
  const columnBytes = (k * operandBits(product.a)) / 8;
  const rowBytes = columnBytes / (sparse ? 2 : 1);
  if (b.length * registerBits !== 8 * n * columnBytes) return undefined;
  if (a.length * registerBits !== 8 * m * rowBytes) return undefined;
  const rows = m === 8 ? 8 : 16;
  return { instruction, product, rows, rowBytes, columnBytes, registers, metadata };
}

function run(form: MmaForm, call: CollectiveCall): "done" {
  const { product, rows, rowBytes, columnBytes, metadata } = form;
  const { warp } = call;
  const [d, a, b, c] = form.registers;
  const left = new Uint8Array(rows * rowBytes);
  gatherRows(readRegisters(a, warp), rows, left, rowBytes);
  const right = gatherColumns(readRegisters(b, warp), columnBytes);
  const sums = new Uint32Array(rows * columns);
  const halves = product.accumulator === "f16";
  if (halves) gatherHalves(readRegisters(c, warp), columns, sums);
  else gatherWords(readRegisters(c, warp), rows, columns, sums);
  if (metadata === undefined) multiplyBytes(product, left, rows, right, columns, sums);
  else {
    const bits = readMetadata(metadata, form.instruction, call);
    const indices = sparseIndicesOf(metadata.sparsity, bits);
    multiplySparse(product, left, rows, right, columns, sums, indices);
  }
  const results = d.map(() => new Int32Array(32));
  if (halves) scatterHalves(sums, columns, results);
  else scatterWords(sums, rows, columns, results);
  writeRegisters(d, warp, results);
  return "done";
}
