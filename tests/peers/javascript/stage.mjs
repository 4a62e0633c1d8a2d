// What the programs here share: the stage, which the test describes on standard input, and a browser that the test
// drives. A program asks it by lines of JSON on standard output.
import { createInterface } from 'node:readline'

const reader = createInterface({ input: process.stdin })
const lines = reader[Symbol.asyncIterator]()

function tell(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`)
}

async function answer() {
  return JSON.parse((await lines.next()).value)
}

export const stage = await answer()

// Lets the person sign in at an authorization address and press a button; gives the address that leads back.
export async function allow(address, button = 'allow') {
  tell({ allow: `${address}`, button })
  return new URL(await answer())
}

// Lets the person follow a device's link and allow it.
export async function connect(address) {
  tell({ connect: address })
  await answer()
}

// Lets it be so many seconds later at the server until the work is done.
export async function later(seconds, work) {
  tell({ later: seconds })
  await answer()
  try {
    return await work()
  } finally {
    tell({ later: 0 })
    await answer()
  }
}

// The part of an id_token by which it names its access token (OpenID Connect Core 3.1.3.6).
export async function accessTokenHash(token) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))
  return Buffer.from(digest.slice(0, 16)).toString('base64url')
}

// Imports a private key, as private_key_jwt takes it.
export async function privateKey({ kid, kty, ...jwk }) {
  const algorithm = { RSA: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }, EC: { name: 'ECDSA', namedCurve: 'P-256' } }
  return { kid, key: await crypto.subtle.importKey('jwk', { kty, ...jwk }, algorithm[kty], false, ['sign']) }
}

// Takes the steps one after the other, and tells which are done.
export async function run(steps) {
  for (const [name, work] of Object.entries(steps)) {
    await work()
    tell({ done: name })
  }
  reader.close()
}
