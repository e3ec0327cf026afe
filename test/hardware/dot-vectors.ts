/**
 * The dot products that were measured on hardware, made again from their numbers: 102,400 of each type,
 * sixteen kinds in turn. `scripts/probe/generator.h` makes the same ones there; both use 32-bit integer
 * arithmetic alone.
 *
 *   kind  0 any bits          4 exponents over 16     8 C against product 0   12 all ones
 *         1 one exponent      5 all exponents         9 mostly zeros          13 large C
 *         2 exponents over 4  6 pairs that cancel    10 subnormal numbers     14 small C
 *         3 exponents over 8  7 halves that cancel   11 powers of two         15 overflow, infinities, NaNs
 */

export interface ProbeFormat {
  readonly bytes: 1 | 2 | 4;
  readonly exponentBits: number;
  readonly mantissaBits: number;
  /** Bits of a register below the mantissa. */
  readonly low: number;
  readonly infinity: boolean;
}

export const probeFormats = {
  f16: { bytes: 2, exponentBits: 5, mantissaBits: 10, low: 0, infinity: true },
  bf16: { bytes: 2, exponentBits: 8, mantissaBits: 7, low: 0, infinity: true },
  tf32: { bytes: 4, exponentBits: 8, mantissaBits: 10, low: 13, infinity: true },
  f8e4m3fn: { bytes: 1, exponentBits: 4, mantissaBits: 3, low: 0, infinity: false },
  f8e5m2: { bytes: 1, exponentBits: 5, mantissaBits: 2, low: 0, infinity: true },
  f32: { bytes: 4, exponentBits: 8, mantissaBits: 23, low: 0, infinity: true },
} as const satisfies { readonly [name: string]: ProbeFormat };

export const probeKinds = 16;
export const probeCount = 102_400;

export interface ProbeDot {
  readonly a: Uint8Array;
  readonly b: Uint8Array;
  readonly c: number;
}

const stepBytes = 32;
const widths = [0, 1, 4, 8, 16, 256, 6, 6, 8, 12, 4, 16, 4, 6, 6, 4];

function mix(word: number): number {
  let mixed = word ^ (word >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

class Stream {
  #state: number;

  constructor(seed: number) {
    this.#state = mix(seed);
  }

  bits(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    return mix(this.#state);
  }

  below(limit: number): number {
    return (this.bits() >>> 8) % limit;
  }
}

function bias({ exponentBits }: ProbeFormat): number {
  return (1 << (exponentBits - 1)) - 1;
}

function topExponent({ exponentBits, infinity }: ProbeFormat): number {
  return (1 << exponentBits) - 1 - (infinity ? 1 : 0);
}

function assemble(format: ProbeFormat, sign: number, exponent: number, mantissa: number): number {
  const { exponentBits, mantissaBits, infinity, low } = format;
  const top = topExponent(format);
  const field = Math.min(top, Math.max(0, exponent));
  const ones = (1 << mantissaBits) - 1;
  let kept = mantissa & ones;
  if (!infinity && field === top && kept === ones) kept -= 1;
  return (
    ((((sign & 1) << (exponentBits + mantissaBits)) | (field << mantissaBits) | kept) << low) >>> 0
  );
}

/** A way to draw the operands of one dot product. */
class Drawing {
  readonly stream: Stream;
  readonly kind: number;
  readonly width: number;

  constructor(index: number) {
    this.stream = new Stream((Math.imul(index, 0x9e3779b1) + 0x51ed27) | 0);
    this.kind = index & 15;
    this.width = widths[this.kind] ?? 0;
  }

  start(format: ProbeFormat): number {
    if (this.kind === 5 || this.kind === 10) return 0;
    if (this.kind === 15) return topExponent(format) - 3;
    return bias(format) - Math.trunc(this.width / 2) + this.stream.below(9) - 4;
  }

  element(format: ProbeFormat, from: number): number {
    const { bytes, exponentBits, mantissaBits, low } = format;
    const word = this.stream.bits();
    if (this.kind === 0) return bytes === 4 ? word : word & ((1 << (8 * bytes)) - 1);
    const span = Math.min(this.width, topExponent(format) + 1);
    const exponent = from + (((word >>> 4) & 0xffff) % span);
    let mantissa = this.stream.bits() >>> 3;
    if (this.kind === 11) mantissa = 0;
    if (this.kind === 12) mantissa = 0xffff_ffff;
    const sign = ((word & 1) << (exponentBits + mantissaBits)) << low;
    if (this.kind === 9 && word >>> 28 >= 4) return sign >>> 0;
    if (this.kind === 15 && word >>> 27 === 0) {
      const payload = (word & 8) === 0 ? 0 : mantissa & ((1 << mantissaBits) - 1);
      return (sign | (((((1 << exponentBits) - 1) << mantissaBits) | payload) << low)) >>> 0;
    }
    const dust = ((word >>> 3) & 1) === 1 && low > 0 ? (mantissa >>> 12) & ((1 << low) - 1) : 0;
    return (assemble(format, word & 1, exponent, mantissa) | dust) >>> 0;
  }
}

function put(target: Uint8Array, { bytes }: ProbeFormat, k: number, bits: number): void {
  for (let byte = 0; byte < bytes; byte++) target[k * bytes + byte] = bits >>> (8 * byte);
}

function get(source: Uint8Array, { bytes }: ProbeFormat, k: number): number {
  let bits = 0;
  for (let byte = 0; byte < bytes; byte++) bits |= (source[k * bytes + byte] ?? 0) << (8 * byte);
  return bits >>> 0;
}

function cancel(drawing: Drawing, dot: ProbeDot, fa: ProbeFormat, fb: ProbeFormat): void {
  const count = stepBytes / fa.bytes;
  const apart = drawing.kind === 6 ? 1 : count / 2;
  const sign = 2 ** (8 * fb.bytes - 1);
  for (let k = 0; k < count; k++) {
    if (Math.floor(k / apart) % 2 === 0) continue;
    const word = drawing.stream.bits();
    put(dot.a, fa, k, get(dot.a, fa, k - apart));
    const flipped = get(dot.b, fb, k - apart) ^ sign ^ (word % 4 === 0 ? 1 << fb.low : 0);
    put(dot.b, fb, k, flipped >>> 0);
  }
}

function exponentField(bits: number, { mantissaBits, low, exponentBits }: ProbeFormat): number {
  return (bits >>> (mantissaBits + low)) & ((1 << exponentBits) - 1);
}

/** C: its exponent is that of a typical product, moved. */
function accumulator(
  drawing: Drawing,
  dot: ProbeDot,
  [fa, fb, fc]: readonly [ProbeFormat, ProbeFormat, ProbeFormat],
  [startA, startB]: readonly [number, number],
): number {
  const { kind, stream, width } = drawing;
  const word = stream.bits();
  if (kind === 0) return fc.bytes === 4 ? word : word & 0xffff;
  let exponent =
    startA -
    bias(fa) +
    startB -
    bias(fb) +
    bias(fc) +
    (((word >>> 8) & 0xff) % Math.min(2 * width, 24));
  if (kind === 5) exponent = (word >>> 8) & 0xff;
  if (kind === 13) exponent += 8 + (((word >>> 16) & 0xff) % 19);
  if (kind === 14) exponent -= 8 + (((word >>> 16) & 0xff) % 19);
  let sign = word & 1;
  let mantissa = stream.bits() >>> 3;
  if (kind === 8) {
    const a = get(dot.a, fa, 0);
    const b = get(dot.b, fb, 0);
    exponent = exponentField(a, fa) - bias(fa) + exponentField(b, fb) - bias(fb) + bias(fc);
    exponent += (word >>> 4) & 1;
    sign = (a >>> (8 * fa.bytes - 1)) ^ (b >>> (8 * fb.bytes - 1)) ^ 1;
  }
  if (word >>> 29 === 0) return 0;
  if (kind === 11) mantissa = 0;
  return assemble(fc, sign, exponent, mantissa);
}

/** Dot product number `index`: A in `fa`, B in `fb`, C in `fc`. */
export function probeDot(
  index: number,
  fa: ProbeFormat,
  fb: ProbeFormat,
  fc: ProbeFormat,
): ProbeDot {
  const drawing = new Drawing(index);
  const a = new Uint8Array(stepBytes);
  const b = new Uint8Array(stepBytes);
  const startA = drawing.start(fa);
  const startB = drawing.start(fb);
  for (let k = 0; k < stepBytes / fa.bytes; k++) {
    put(a, fa, k, drawing.element(fa, startA));
    put(b, fb, k, drawing.element(fb, startB));
  }
  const dot = { a, b, c: 0 };
  if (drawing.kind === 6 || drawing.kind === 7) cancel(drawing, dot, fa, fb);
  return { a, b, c: accumulator(drawing, dot, [fa, fb, fc], [startA, startB]) };
}
