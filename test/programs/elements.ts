/**
 * Elements of matrices for products, as bytes. What they are like decides which rule of the tensor core
 * shows:
 *
 *   near     exponents around that of one: sums keep and lose bits
 *   wide     any finite number: most of a sum is cut off, and f16 results overflow
 *   edges    zeros, subnormal numbers, limits, and now and then an infinity or a NaN
 */
import { Random } from "../../src/support/random.ts";

export type Flavour = "near" | "wide" | "edges";

interface FloatShape {
  readonly bytes: 1 | 2 | 4 | 8;
  readonly exponentBits: number;
  readonly fractionBits: number;
  /** e4m3 has numbers where others have infinities. */
  readonly finiteTop?: true;
}

const floats: { readonly [type: string]: FloatShape } = {
  f16: { bytes: 2, exponentBits: 5, fractionBits: 10 },
  bf16: { bytes: 2, exponentBits: 8, fractionBits: 7 },
  tf32: { bytes: 4, exponentBits: 8, fractionBits: 23 },
  f32: { bytes: 4, exponentBits: 8, fractionBits: 23 },
  /** Its upper word; the lower one is drawn apart. */
  f64: { bytes: 8, exponentBits: 11, fractionBits: 20 },
  e4m3: { bytes: 1, exponentBits: 4, fractionBits: 3, finiteTop: true },
  e5m2: { bytes: 1, exponentBits: 5, fractionBits: 2 },
};

function drawFloat(shape: FloatShape, flavour: Flavour, random: Random): number {
  const { exponentBits, fractionBits, finiteTop } = shape;
  const bias = 2 ** (exponentBits - 1) - 1;
  const top = 2 ** exponentBits - 1;
  const sign = random.below(2) * 2 ** (exponentBits + fractionBits);
  const fractions = 2 ** fractionBits;
  const code = (exponent: number, fraction: number): number =>
    sign + exponent * fractions + fraction;
  const draw = random.below(100);
  if (flavour === "near") return code(bias - 4 + random.below(8), random.below(fractions));
  if (flavour === "wide" || draw < 40) return code(random.below(top), random.below(fractions));
  if (draw < 55) return code(0, 0);
  if (draw < 70) return code(0, random.below(2) === 0 ? 1 : random.below(fractions));
  if (draw < 80) return code(1, random.below(2) * (fractions - 1));
  if (draw < 90) return code(top - 1, random.below(2) * (fractions - 1));
  if (draw < 97) return code(bias, 0);
  if (finiteTop === true) return code(top, draw < 99 ? random.below(fractions - 1) : fractions - 1);
  return code(top, draw < 99 ? 0 : 1 + random.below(fractions - 1));
}

/** `bytes` bytes of elements. Integers are any bits; edges of them are the largest and the smallest. */
export function elementBytes(
  type: string,
  bytes: number,
  flavour: Flavour,
  seed: number,
): Uint8Array {
  const random = new Random(seed);
  const view = new DataView(new ArrayBuffer(bytes));
  const shape = floats[type];
  const step = shape?.bytes ?? (type === "s32" ? 4 : 1);
  for (let at = 0; at < bytes; at += step) {
    const bits =
      shape === undefined ? drawInteger(type, flavour, random) : drawFloat(shape, flavour, random);
    if (step === 1) view.setUint8(at, bits);
    else if (step === 2) view.setUint16(at, bits, true);
    else view.setUint32(at + step - 4, bits, true);
    if (step === 8 && (flavour !== "edges" || random.below(2) === 0))
      view.setUint32(at, random.bits(), true);
  }
  return new Uint8Array(view.buffer);
}

function drawInteger(type: string, flavour: Flavour, random: Random): number {
  if (flavour !== "edges" || random.below(2) === 0) return random.bits();
  const limits =
    type === "s32" ? [0x7fff_ffff, 0x8000_0000, 0x7fff_fff0] : [0x80, 0x7f, 0xff, 0x88];
  return limits[random.below(limits.length)] ?? 0;
}

const sorted = [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110];
const reversed = [0b0001, 0b0010, 0b0011, 0b0110, 0b0111, 0b1011];

/** Metadata of sparse products: valid bits for eight chunks a word. */
export function metadataBytes(
  type: string,
  words: number,
  order: "sorted" | "any",
  seed: number,
): Uint8Array {
  const random = new Random(seed);
  const codes =
    type === "tf32" ? [0b0100, 0b1110] : order === "sorted" ? sorted : [...sorted, ...reversed];
  return Uint8Array.from({ length: 4 * words }, () => {
    const [low = 0, high = 0] = [0, 1].map(() => codes[random.below(codes.length)]);
    return low | (high << 4);
  });
}
