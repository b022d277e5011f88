// Identifiers that the page makes before it speaks: 48 bits of time, 80 of chance, lower-case Crockford.
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/** 26 characters that sort by the millisecond of their making (https://github.com/ulid/spec). */
export function ulid(now = Date.now(), random = crypto.getRandomValues(new Uint8Array(10))) {
  let value = BigInt(now);
  for (const byte of random) value = (value << 8n) | BigInt(byte);
  let text = "";
  for (let shift = 125n; shift >= 0n; shift -= 5n) text += ALPHABET[Number((value >> shift) & 31n)];
  return text;
}
