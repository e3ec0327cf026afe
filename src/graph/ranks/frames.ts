/**
 * Messages between ranks as bytes, for links that carry nothing else: the message as JSON, and the elements of its tensors after it.
 *
 *   [length of the text, 4 bytes] {"kind": "part", …, "values": [{ "element": "f32", "shape": [2], "bytes": 8 }]} 00 00 80 3f …
 */
import type { Peers } from "../../workers/port.ts";
import type { Connect, RankMessage, SentTensor } from "./link.ts";

type Counted = Omit<SentTensor, "bytes"> & { readonly bytes: number };

export function framed(message: RankMessage): readonly Uint8Array[] {
  const values = message.kind === "part" ? message.values : [];
  const counted = values.map(({ bytes, ...value }): Counted => ({ ...value, bytes: bytes.length }));
  const body = message.kind === "part" ? { ...message, values: counted } : message;
  const text = new TextEncoder().encode(JSON.stringify(body));
  const head = new Uint8Array(4);
  new DataView(head.buffer).setUint32(0, text.length, true);
  return [head, text, ...values.map(({ bytes }) => bytes)];
}

export function unframed(frame: Uint8Array): RankMessage {
  const { buffer, byteOffset } = frame;
  const length = new DataView(buffer, byteOffset).getUint32(0, true);
  const text = new TextDecoder().decode(frame.subarray(4, 4 + length));
  const body = JSON.parse(text) as
    | Exclude<RankMessage, { readonly kind: "part" }>
    | (Omit<Extract<RankMessage, { readonly kind: "part" }>, "values"> & {
        readonly values: readonly Counted[];
      });
  if (body.kind !== "part") return body;
  let at = 4 + length;
  const values = body.values.map(({ bytes, ...value }): SentTensor => {
    at += bytes;
    return { ...value, bytes: frame.slice(at - bytes, at) };
  });
  return { ...body, values };
}

/** Links over connections of processes. */
export function peerLinks(peers: Peers): Connect {
  return (rank, { received, ended }) => {
    const peer = peers.open(rank, {
      received: (frame) => {
        received(unframed(frame));
      },
      ended,
    });
    return {
      post: (message) => {
        peer.post(framed(message));
      },
      close: () => {
        peer.close();
      },
    };
  };
}
