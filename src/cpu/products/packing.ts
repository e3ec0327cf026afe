/**
 * Packing operands of products into panels: of so many lines (rows of A, columns of B), a step after the other, so that the innermost
 * loop reads neighbours.
 *
 *   lines 0 … 3   steps 0 1 2 …      panel:  00 10 20 30 | 01 11 21 31 | 02 …      then that of lines 4 … 7
 *
 * Elements are converted on the way. Lines that are neighbours in memory are copied, steps that are neighbours are turned 4 × 4, and others
 * are gathered. A panel with fewer lines repeats its last one, and panels may be written up to three steps behind their end.
 */
import { f32, f64, i32 as int32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { convertParts } from "../convert/index.ts";
import { i32, load, loadLane, op, read, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import { lineAddresses, overPanels, panelBody, slotBytes } from "./panels.ts";
import type { Body, Packing } from "./panels.ts";

/** Bytes behind the last panel that packing may write. */
export function packingSlack(lines: number, bytes: number): number {
  return 3 * lines * bytes;
}

/** Four neighbours in memory as vectors of what a format is multiplied in. */
export function loadNumbers(
  builder: FunctionBuilder,
  from: DType,
  address: Expression,
  offset = 0,
): readonly Expression[] {
  const keep = (value: Expression): Expression => builder.keep(value);
  const sign = from.kind === "signed" ? "s" : "u";
  const to = from.kind !== "float" ? int32 : from.bits === 64 ? f64 : f32;
  const code = { builder, relaxed: false };
  switch (slotBytes(from)) {
    case 8: {
      const halves = [0, 16].map((behind) => keep(load("v128.load", address, offset + behind)));
      return convertParts(code, from, to, halves);
    }
    case 4:
      return convertParts(code, from, to, [keep(load("v128.load", address, offset))]);
    case 2:
      return convertParts(code, from, to, [keep(load(`v128.load16x4_${sign}`, address, offset))]);
    default: {
      const bytes = load("v128.load32_zero", address, offset);
      const words = op(`i16x8.extend_low_i8x16_${sign}`, bytes);
      const wide = keep(op(`i32x4.extend_low_i16x8_${sign}`, words));
      const isTrue = from.kind === "bool";
      return convertParts(code, from, to, [
        isTrue ? keep(op("i32x4.ne", wide, splat("i32x4", 0))) : wide,
      ]);
    }
  }
}

/** Four vectors of f32 turned: the first lanes of all, the second ones, and so on. */
export function transpose4(
  builder: FunctionBuilder,
  rows: readonly Expression[],
): readonly Expression[] {
  const [a, b, c, d] = rows;
  if (a === undefined || b === undefined || c === undefined || d === undefined)
    throw new Error("four vectors are turned at once");
  const keep = (left: Expression, right: Expression, lanes: readonly number[]): Expression =>
    builder.keep(shuffleLanes(left, right, lanes));
  const [low, high] = [
    [0, 4, 1, 5],
    [2, 6, 3, 7],
  ] as const;
  const [ab, cd, abHigh, cdHigh] = [
    keep(a, b, low),
    keep(c, d, low),
    keep(a, b, high),
    keep(c, d, high),
  ];
  return [
    keep(ab, cd, [0, 1, 4, 5]),
    keep(ab, cd, [2, 3, 6, 7]),
    keep(abHigh, cdHigh, [0, 1, 4, 5]),
    keep(abHigh, cdHigh, [2, 3, 6, 7]),
  ];
}

/** Parameters: source, target, lines, steps, and the bytes between lines and between steps of the source. */
export function definePacking(module: ModuleBuilder, packing: Packing): Callee {
  const { from } = packing;
  const turned = { when: "steps", write: turnedPanel(packing) } as const;
  return overPanels(module, packing, from.bits === 64 ? 8 : 4, false, [
    { when: "lines", write: copiedPanel(packing) },
    ...(from.bits === 64 ? [] : [turned]),
    { when: "any", write: gatheredPanel(packing) },
  ]);
}

/** A step at a time; what lies behind the last line is read and counts for nothing. */
function copiedPanel({ from, lines }: Packing): Body {
  return panelBody((builder, { source, target, steps, stepStride }) => {
    const bytes = from.bits === 64 ? 8 : 4;
    const at = builder.variable(source, "at");
    const end = i32.add(target, i32.mul(steps, i32.of(lines * bytes)));
    builder.countedLoop(target, end, lines * bytes, (to) => {
      for (let line = 0; line < lines; line += 4)
        loadNumbers(builder, from, read(at), line * slotBytes(from)).forEach((part, index) =>
          builder.store("v128.store", to, part, line * bytes + 16 * index),
        );
      builder.set(at, i32.add(read(at), stepStride));
    });
  });
}

/** The last one as often as it takes. */
function groupsOfFour(addresses: readonly Expression[]): readonly (readonly Expression[])[] {
  const groups: (readonly Expression[])[] = [];
  for (let first = 0; first < addresses.length; first += 4) {
    const last = addresses.length - 1;
    groups.push([0, 1, 2, 3].flatMap((index) => addresses[Math.min(first + index, last)] ?? []));
  }
  return groups;
}

/** Four lines by four steps, turned. */
function turnedPanel({ from, lines }: Packing): Body {
  return panelBody((builder, panel) => {
    const { target, steps } = panel;
    const addresses = lineAddresses(builder, lines, panel);
    const behind = builder.variable(i32.of(0), "behind");
    const end = i32.add(target, i32.mul(steps, i32.of(4 * lines)));
    builder.countedLoop(target, end, 16 * lines, (to) => {
      const groups = groupsOfFour(addresses).map((group) =>
        transpose4(
          builder,
          group.flatMap((address) =>
            loadNumbers(builder, from, builder.keep(i32.add(address, read(behind)))),
          ),
        ),
      );
      // In the order of memory: what a vector has behind the last line is stored over.
      for (let step = 0; step < 4; step++)
        groups.forEach((columns, group) => {
          const column = columns[step];
          if (column !== undefined)
            builder.store("v128.store", to, column, 4 * (lines * step + 4 * group));
        });
      builder.set(behind, i32.add(read(behind), i32.of(4 * slotBytes(from))));
    });
  });
}

const scalarLoads: { readonly [bytes: number]: OpcodeName } = {
  1: "v128.load8_lane",
  2: "v128.load16_lane",
  4: "v128.load32_lane",
  8: "v128.load64_lane",
};

/** Elements of any strides, one at a time: collected as four neighbours, then converted as those are. */
function gatheredPanel({ from, lines }: Packing): Body {
  return panelBody((builder, panel) => {
    const { target, steps, stepStride } = panel;
    const bytes = from.bits === 64 ? 8 : 4;
    const element = slotBytes(from);
    const addresses = lineAddresses(builder, lines, panel);
    const behind = builder.variable(i32.of(0), "behind");
    const end = i32.add(target, i32.mul(steps, i32.of(lines * bytes)));
    const opcode = scalarLoads[element] ?? "v128.load32_lane";
    builder.countedLoop(target, end, lines * bytes, (to) => {
      for (let line = 0; line < lines; line += 4) {
        const four = addresses.slice(line, line + 4);
        const perVector = 16 / element;
        for (let first = 0; first < 4; first += perVector) {
          const gathered = four
            .slice(first, first + perVector)
            .reduce<Expression>(
              (vector, address, index) =>
                loadLane(opcode, index, builder.keep(i32.add(address, read(behind))), vector),
              splat("i32x4", 0),
            );
          // They lie in the panel for a moment, from where they are read as neighbours.
          builder.store("v128.store", to, gathered, line * bytes + 16 * (first / perVector));
        }
        loadNumbers(builder, from, to, line * bytes).forEach((part, index) =>
          builder.store("v128.store", to, part, line * bytes + 16 * index),
        );
      }
      builder.set(behind, i32.add(read(behind), stepStride));
    });
  });
}
