/**
 * Packing integers of at most 8 bits for exact products: two steps of a line side by side, 16 bits each, as the instruction takes them
 * that multiplies pairs and adds. An odd last step has a zero beside it.
 *
 *   lines 0 … 3   steps 0 1 2      panel:  00 01  10 11  20 21  30 31 | 02 0  12 0  22 0  32 0
 */
import type { DType } from "../../formats/dtype.ts";
import { i32, load, op, read, select, splat } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import { isPaired, lineAddresses, overPanels, panelBody } from "./panels.ts";
import type { Packing, Panel } from "./panels.ts";

/** As `definePacking`: of integers of at most 8 bits, an element a byte. */
export function defineIntegerPacking(module: ModuleBuilder, packing: Packing): Callee {
  const { from } = packing;
  if (!isPaired(from)) throw new Error(`${from.name} is no integer of 8 bits`);
  return overPanels(module, packing, 4, true, [
    { when: "lines", write: copiedPairs(packing) },
    { when: "any", write: gatheredPairs(packing) },
  ]);
}

/** Four bytes as lanes of 32 bits. */
function loadLanes(from: DType, address: Expression, offset: number): Expression {
  const sign = from.kind === "signed" ? "s" : "u";
  const bytes = load("v128.load32_zero", address, offset);
  return op(`i32x4.extend_low_i16x8_${sign}`, op(`i16x8.extend_low_i8x16_${sign}`, bytes));
}

function eachPair(
  builder: FunctionBuilder,
  { lines }: Packing,
  { source, target, steps, stepStride }: Panel,
  write: (to: Expression, first: Expression, second: Expression, isLast: Expression) => void,
): void {
  const first = builder.variable(source, "first");
  const left = builder.variable(steps, "left");
  const pairs = op("i32.shr_u", i32.add(steps, i32.of(1)), i32.of(1));
  const end = i32.add(target, i32.mul(pairs, i32.of(4 * lines)));
  builder.countedLoop(target, end, 4 * lines, (to) => {
    const second = builder.keep(i32.add(read(first), stepStride));
    // The partner of an odd last step is masked out.
    const mask = select(op("i32.gt_u", read(left), i32.of(1)), i32.of(-1), i32.of(0));
    write(to, read(first), second, builder.keep(mask));
    builder.set(first, i32.add(second, stepStride));
    builder.set(left, i32.sub(read(left), i32.of(2)));
  });
}

function copiedPairs(packing: Packing) {
  const { from, lines } = packing;
  return panelBody((builder, panel) =>
    eachPair(builder, packing, panel, (to, first, second, mask) => {
      const kept = builder.keep(op("i32x4.splat", mask));
      for (let line = 0; line < lines; line += 4) {
        const low = op("v128.and", loadLanes(from, first, line), splat("i32x4", 0xffff));
        const high = op("i32x4.shl", loadLanes(from, second, line), i32.of(16));
        const pair = op("v128.or", low, op("v128.and", high, kept));
        builder.store("v128.store", to, pair, 4 * line);
      }
    }),
  );
}

function gatheredPairs(packing: Packing) {
  const { from, lines } = packing;
  const name = from.kind === "signed" ? "i32.load8_s" : "i32.load8_u";
  return panelBody((builder, panel) => {
    const addresses = lineAddresses(builder, lines, panel);
    eachPair(builder, packing, panel, (to, first, second, mask) => {
      addresses.forEach((address, line) => {
        const distance = (at: Expression) => i32.add(address, i32.sub(at, panel.source));
        const low = op("i32.and", load(name, distance(first)), i32.of(0xffff));
        const high = op("i32.shl", load(name, distance(second)), i32.of(16));
        builder.store("i32.store", to, op("i32.or", low, op("i32.and", high, mask)), 4 * line);
      });
    });
  });
}
