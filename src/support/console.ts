/**
 * The one place where the library writes to the host's console, for what has no caller to return to or
 * throw at: lines that kernels print, and memory that was forgotten.
 */
/* eslint-disable no-console */

export function printLine(line: string): void {
  console.log(line);
}

export function warn(text: string): void {
  console.warn(text);
}
