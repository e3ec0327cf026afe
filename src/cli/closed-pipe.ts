/**
 * Streams that take no more. A reader that has seen enough, as `head` has, closes the pipe: the rest is then written to
 * nobody, and the command ends without a word. Anything else, such as a full disk, makes it fail, since what it had to say is
 * lost.
 */
export interface FailingStream {
  on(event: "error", listener: (error: Error & { readonly code?: string }) => void): unknown;
}

/** Has `exit` called when nobody reads the stream any more, `fail` when it cannot be written. */
export function endWithReader(
  stream: FailingStream,
  exit: () => void,
  fail: (error: Error) => void,
): void {
  stream.on("error", (error) => {
    if (error.code === "EPIPE") exit();
    else fail(error);
  });
}
