/**
 * Formats of debugPrint: `{}` takes the next value, of a long tile its ends; `{whole}` takes all of it.
 *
 *   "row {} of {whole}"      texts "row ", " of ", ""      whole: false, true
 */
export interface PrintFormat {
  /** What stands around the values, one text more than there are places. */
  readonly texts: readonly string[];
  /** Of each place, whether its value is printed whole. */
  readonly whole: readonly boolean[];
}

export function parsePrintFormat(format: string): PrintFormat {
  const parts = format.split(/(\{(?:whole)?\})/);
  return {
    texts: parts.filter((_, index) => index % 2 === 0),
    whole: parts.flatMap((part, index) => (index % 2 === 1 ? [part === "{whole}"] : [])),
  };
}
