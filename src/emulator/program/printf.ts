/**
 * What `printf` in a kernel says. The compiler packs the arguments into memory of the lane, each at a multiple
 * of its size: integers and characters in 4 bytes, longer ones, numbers and pointers in 8.
 */

/** How the text is made: reads of memory at generic addresses. */
export interface PrintSource {
  word(address: number): number;
  wide(address: number): bigint;
  text(address: number): string;
}

const pattern = /%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|j|z|t|L)?([diouxXcsfFeEgGaAp%])/g;
const longSizes = new Set(["ll", "l", "j", "z", "t"]);

/** Takes arguments one behind the other. */
class Arguments {
  readonly #source: PrintSource;
  #at: number;

  constructor(source: PrintSource, at: number) {
    this.#source = source;
    this.#at = at;
  }

  #next(bytes: number): number {
    const at = Math.ceil(this.#at / bytes) * bytes;
    this.#at = at + bytes;
    return at;
  }

  word(): number {
    return this.#source.word(this.#next(4)) | 0;
  }

  wide(): bigint {
    return this.#source.wide(this.#next(8));
  }

  double(): number {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, this.wide());
    return view.getFloat64(0);
  }

  text(): string {
    return this.#source.text(Number(this.wide()));
  }
}

interface Directive {
  readonly flags: string;
  readonly precision: number | undefined;
  readonly size: string;
  readonly kind: string;
}

function withSign(text: string, isNegative: boolean, flags: string): string {
  if (isNegative) return `-${text}`;
  if (flags.includes("+")) return `+${text}`;
  return flags.includes(" ") ? ` ${text}` : text;
}

const radixes: { readonly [kind: string]: number } = { o: 8, x: 16, X: 16 };

function integerText(given: Arguments, { flags, precision, size, kind }: Directive): string {
  const isSigned = kind === "d" || kind === "i";
  const isLong = longSizes.has(size);
  const bits = size === "hh" ? 8 : size === "h" ? 16 : isLong ? 64 : 32;
  const raw = isLong ? given.wide() : BigInt(given.word());
  const value = isSigned ? BigInt.asIntN(bits, raw) : BigInt.asUintN(bits, raw);
  const digits = (value < 0n ? -value : value).toString(radixes[kind] ?? 10);
  const padded = digits.padStart(precision ?? 1, "0");
  const prefix = flags.includes("#") && kind.toLowerCase() === "x" && value !== 0n ? "0x" : "";
  const text = isSigned ? withSign(padded, value < 0n, flags) : prefix + padded;
  return kind === "X" ? text.toUpperCase() : text;
}

/** JavaScript's exponents have no leading zero. */
function exponentText(text: string): string {
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

function generalText(value: number, precision: number, flags: string): string {
  const digits = precision === 0 ? 1 : precision;
  const exponent = value === 0 ? 0 : Number(value.toExponential(digits - 1).split("e")[1]);
  const isShort = exponent >= -4 && exponent < digits;
  const text = isShort ? value.toFixed(digits - 1 - exponent) : value.toExponential(digits - 1);
  const trimmed = flags.includes("#") ? text : text.replace(/(\.\d*?)0+(?=e|$)/, "$1");
  return exponentText(trimmed.replace(/\.(?=e|$)/, ""));
}

function floatText(value: number, { flags, precision = 6, kind }: Directive): string {
  const size = Math.abs(value);
  const isNegative = value < 0 || Object.is(value, -0);
  const make = (): string => {
    if (Number.isNaN(value)) return "nan";
    if (size === Infinity) return "inf";
    if (kind === "f" || kind === "F") return size.toFixed(precision);
    if (kind === "e" || kind === "E") return exponentText(size.toExponential(precision));
    return generalText(size, precision, flags);
  };
  const text = withSign(make(), isNegative, flags);
  return kind === kind.toUpperCase() ? text.toUpperCase() : text;
}

function valueText(given: Arguments, directive: Directive): string {
  const { kind, precision } = directive;
  switch (kind) {
    case "%":
      return "%";
    case "c":
      return String.fromCharCode(given.word() & 0xff);
    case "s":
      return given.text().slice(0, precision);
    case "p":
      return `0x${given.wide().toString(16)}`;
    case "d":
    case "i":
    case "o":
    case "u":
    case "x":
    case "X":
      return integerText(given, directive);
    default:
      return floatText(given.double(), directive);
  }
}

function placed(text: string, width: number, flags: string, isNumber: boolean): string {
  if (width < 0 || flags.includes("-")) return text.padEnd(Math.abs(width));
  if (!flags.includes("0") || !isNumber) return text.padStart(width);
  const [sign = ""] = /^(?:[-+ ]|0x)?/i.exec(text) ?? [];
  return sign + text.slice(sign.length).padStart(width - sign.length, "0");
}

/** The text and how many arguments it took. */
export function printed(
  format: string,
  address: number,
  source: PrintSource,
): { readonly text: string; readonly count: number } {
  const given = new Arguments(source, address);
  const number = (text: string): number => (text === "*" ? given.word() : Number(text));
  let count = 0;
  const text = format.replaceAll(pattern, (...groups: readonly unknown[]) => {
    const [, flags, width, precision, size, kind] = groups as readonly (string | undefined)[];
    const wide = width === undefined ? 0 : number(width);
    const directive = {
      flags: flags ?? "",
      precision: precision === undefined ? undefined : number(precision),
      size: size ?? "",
      kind: kind ?? "",
    };
    if (kind !== "%") count += 1;
    const value = valueText(given, directive);
    return placed(value, wide, directive.flags, !"csp%".includes(directive.kind));
  });
  return { text, count };
}
