/**
 * A reader that has seen enough, as `head` has, closes the pipe. The rest is then written to nobody, and the
 * command ends without a word; nothing else that goes wrong with a stream is ours to hide.
 */
export interface FailingStream {
  on(event: "error", listener: (error: Error & { readonly code?: string }) => void): unknown;
}

/** Has `exit` called when nobody reads the stream any more. */
export function endWithReader(stream: FailingStream, exit: () => void): void {
  stream.on("error", (error) => {
    if (error.code !== "EPIPE") throw error;
    exit();
  });
}
