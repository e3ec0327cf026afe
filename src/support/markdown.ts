/** A Markdown table whose columns line up; bars in cells are bars of the text. */
export function markdownTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const all = [header, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = header.map((_, column) =>
    Math.max(...all.map((row) => [...(row[column] ?? "")].length)),
  );
  const [first, ...others] = all.map(
    (row) =>
      `| ${row.map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - [...cell].length)).join(" | ")} |`,
  );
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [first, rule, ...others].join("\n");
}
