/**
 * Whether machine code leaves registers of products in flight alone. Tensor cores read left factors and metadata and
 * write accumulators until a wait has seen the product end, and the assembler, which gives out registers and moves
 * instructions, must keep to that. It was seen not to, so what it makes is read:
 *
 *   HGMMA.64x8x16.F32.BF16 R24, R4, gdesc[UR4], R24, gsb0    R4–R7 are read, R24–R27 written, closed as a group
 *   IADD3 R5, R8, R9, RZ                                     R5 is written meanwhile: reported
 *   WARPGROUP.DEPBAR.LE gsb0, 0x0                            over
 *
 * Ways through a function are followed as in `src/ir/in-flight-products.ts`: a product is known by its instruction and by how many
 * groups were closed behind it, of which the fewest count where ways join.
 */

interface Instruction {
  readonly at: string;
  readonly text: string;
  readonly opcode: string;
  readonly operands: readonly string[];
  readonly isGuarded: boolean;
  readonly labels: readonly string[];
}

interface Registers {
  readonly first: number;
  readonly count: number;
}

/** What a product holds. */
interface Held {
  readonly sums: Registers;
  readonly factors: readonly Registers[];
}

/** How many groups were closed behind each product that may run; −1 while its own is open. */
type Running = Map<number, number>;

const line = /^\s*\/\*([0-9a-f]{4,})\*\/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;/;

function instructionsOf(text: string): readonly Instruction[] {
  const found: Instruction[] = [];
  let labels: string[] = [];
  for (const each of text.split("\n")) {
    const label = /^(\.L_x?_?\w+|[\w$]+):\s*$/.exec(each)?.[1];
    if (label !== undefined) labels.push(label);
    const [, at = "", guard, opcode = "", operands = ""] = line.exec(each) ?? [];
    if (opcode === "") continue;
    found.push({
      at,
      text: each.trim(),
      opcode,
      operands: operands.split(/,\s*/),
      isGuarded: guard !== undefined,
      labels,
    });
    labels = [];
  }
  return found;
}

const productOpcode = /^[HQIB]GMMA\b/;

function heldBy({ opcode, operands }: Instruction): Held | undefined {
  if (!productOpcode.test(opcode)) return undefined;
  const [, n = "", rest = ""] = /\.64x(\d+)x\d+\.(\S*)/.exec(opcode) ?? [];
  const wide = rest.startsWith("F16") ? 4 : 2;
  const registers = operands.flatMap((operand) => {
    const number = /^R(\d+)/.exec(operand)?.[1];
    return number === undefined ? [] : [{ operand, number: Number(number) }];
  });
  const [sums, ...others] = registers.map(({ number }) => number);
  if (sums === undefined) return undefined;
  const held = { first: sums, count: Number(n) / wide };
  const [second] = operands.slice(1);
  const left = second?.startsWith("R") === true ? others[0] : undefined;
  const metadata = opcode.includes(".SP") ? others.at(-1) : undefined;
  return {
    sums: held,
    factors: [
      ...(left === undefined ? [] : [{ first: left, count: 4 }]),
      ...(metadata === undefined ? [] : [{ first: metadata, count: 1 }]),
    ],
  };
}

/** Registers from a name on, as many as the instruction takes at most. */
function named(operand: string, opcode: string, isResult: boolean): Registers | undefined {
  const number = /(?<![A-Z])R(\d+)/.exec(operand)?.[1];
  if (number === undefined) return undefined;
  // Addresses are pairs at most, whatever is moved.
  const isAddress = operand.includes("[");
  const wide = /\.128\b|M88\.4|MT88\.4/.test(opcode)
    ? 4
    : /\.64\b|M88\.2|MT88\.2|WIDE|^D[A-Z]+|F64/.test(opcode)
      ? 2
      : 1;
  const count = isAddress ? (operand.includes(".64") ? 2 : 1) : wide;
  const matrix = /^[HQI]MMA|^DMMA/.test(opcode) ? (isResult ? 4 : 2) : count;
  return { first: Number(number), count: matrix };
}

const withoutResult =
  /^(ST|RED|BAR|SYNCS|UTMA|UBLK|EXIT|BRA|NOP|WARPSYNC|MEMBAR|FENCE|CCTL|ERRBAR|DEPBAR|LDGSTS|CALL|RET|BSYNC|BSSY|YIELD|NANOSLEEP|WARPGROUP|B2R|BPT|R2UR|STSM|USETMAXREG|ARRIVES|UCGABAR|PLOP3|R2P|.SETP)/;

function overlap(one: Registers, other: Registers): boolean {
  return one.first < other.first + other.count && other.first < one.first + one.count;
}

/** What an instruction other than a product touches of what one holds. */
function touches(instruction: Instruction, { sums, factors }: Held): boolean {
  const { opcode, operands } = instruction;
  const hasResult = !withoutResult.test(opcode);
  return operands.some((operand, position) => {
    const isResult = position === 0 && hasResult;
    const registers = named(operand, opcode, isResult);
    if (registers === undefined) return false;
    return (
      overlap(registers, sums) || (isResult && factors.some((each) => overlap(registers, each)))
    );
  });
}

/** What a second product touches of the first: sums go on in the same registers, in order. */
function disturbs(second: Held, first: Held): boolean {
  const isChain = second.sums.first === first.sums.first && second.sums.count === first.sums.count;
  return (
    (overlap(second.sums, first.sums) && !isChain) ||
    first.factors.some((each) => overlap(second.sums, each)) ||
    second.factors.some((each) => overlap(first.sums, each))
  );
}

/** Where each instruction may go on. */
function successors(instructions: readonly Instruction[]): readonly (readonly number[])[] {
  const labels = new Map(
    instructions.flatMap(({ labels: own }, index) => own.map((label) => [label, index] as const)),
  );
  return instructions.map(({ opcode, operands, isGuarded }, index) => {
    const next = index + 1 < instructions.length ? [index + 1] : [];
    if (/^(EXIT|RET)/.test(opcode)) return isGuarded ? next : [];
    if (!opcode.startsWith("BRA")) return next;
    const label = /`\((\S+)\)/.exec(operands.join(","))?.[1];
    const target = label === undefined ? undefined : labels.get(label);
    if (target === undefined) throw new Error(`a branch to nowhere: ${operands.join(",")}`);
    const isCertain = !isGuarded && !operands.some((operand) => /^!?U?P\d/.test(operand));
    return isCertain ? [target] : [...next, target];
  });
}

function follow(
  instruction: Instruction,
  index: number,
  isProduct: boolean,
  running: Running,
): void {
  if (isProduct) running.set(index, -1);
  if (isProduct && instruction.operands.includes("gsb0"))
    for (const [product, groups] of running) running.set(product, groups + 1);
  if (!instruction.opcode.startsWith("WARPGROUP.DEPBAR")) return;
  const pending = Number(instruction.operands.at(-1));
  for (const [product, groups] of running) if (groups >= pending) running.delete(product);
}

/** Complaints about a function's machine code, as `nvdisasm -c` writes it. */
export function touchedInFlight(text: string): readonly string[] {
  const instructions = instructionsOf(text);
  const next = successors(instructions);
  const held = instructions.map(heldBy);
  const entries = instructions.map((): Running | undefined => undefined);
  const complaints = new Set<string>();
  entries[0] = new Map();
  const waiting = [0];
  for (let index = waiting.pop(); index !== undefined; index = waiting.pop()) {
    const instruction = instructions[index];
    if (instruction === undefined) continue;
    const own = held[index];
    const running: Running = new Map(entries[index]);
    for (const product of running.keys()) {
      const other = held[product];
      if (other === undefined) continue;
      if (own === undefined ? touches(instruction, other) : disturbs(own, other))
        complaints.add(`${instruction.text} while ${instructions[product]?.text ?? ""} runs`);
    }
    follow(instruction, index, own !== undefined, running);
    for (const successor of next[index] ?? []) {
      const [entry, grown] = joined(entries[successor], running);
      entries[successor] = entry;
      if (grown) waiting.push(successor);
    }
  }
  return [...complaints];
}

function joined(entry: Running | undefined, running: Running): readonly [Running, boolean] {
  if (entry === undefined) return [new Map(running), true];
  let grown = false;
  for (const [product, groups] of running) {
    const known = entry.get(product);
    if (known !== undefined && known <= groups) continue;
    entry.set(product, groups);
    grown = true;
  }
  return [entry, grown];
}
