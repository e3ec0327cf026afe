/**
 * A Markdown table of generated pages: a row is a line that only its own cells change, so cells have no padding, and the
 * formatter is told to add none. Bars in cells are bars of the text.
 */
export function markdownTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  { numbers = false }: { readonly numbers?: boolean } = {},
): string {
  const rule = header.map((_, column) => (numbers && column > 0 ? "--:" : "---"));
  const lines = [header, rule, ...rows].map((row) => {
    return `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["<!-- oxfmt-ignore -->", ...lines].join("\n");
}
