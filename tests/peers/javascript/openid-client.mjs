// openid-client, with id_tokens whose signatures it checks.
import assert from 'node:assert/strict'
import * as openid from 'openid-client'
import { accessTokenHash, allow, connect, privateKey, run, stage } from './stage.mjs'

const NATIVE = 'http://127.0.0.1:50124/callback'
const WEB = 'https://app.example/callback'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

function configured(client, auth, options) {
  const execute = [openid.enableNonRepudiationChecks]
  return openid.discovery(new URL(stage.issuer), client.id, undefined, auth, { execute, ...options })
}

async function signIn(config, redirect, parameters, asRequest = (address) => address) {
  const verifier = openid.randomPKCECodeVerifier()
  const checks = { state: openid.randomState(), nonce: openid.randomNonce() }
  const address = openid.buildAuthorizationUrl(config, {
    redirect_uri: redirect,
    code_challenge: await openid.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    max_age: '3600',
    ...checks,
    ...parameters,
  })
  const tokens = await openid.authorizationCodeGrant(config, asRequest(await allow(address)), {
    pkceCodeVerifier: verifier,
    expectedState: checks.state,
    expectedNonce: checks.nonce,
    maxAge: 3600,
  })
  assert.equal(tokens.claims().at_hash, await accessTokenHash(tokens.access_token))
  return tokens
}

async function refused(work, error) {
  await assert.rejects(work, (caught) => caught instanceof openid.ResponseBodyError && caught.error === error)
}

let application, web, sub

await run({
  'discovery of both kinds': async () => {
    application = await configured(stage.public, openid.None(), { algorithm: 'oauth2' })
    web = await configured(stage.confidential, openid.ClientSecretBasic(stage.confidential.secret))
    assert.deepEqual({ ...application.serverMetadata() }, { ...web.serverMetadata() })
    assert.equal(application.serverMetadata().supportsPKCE(), true)
  },

  'a public client signs a person in, and its refresh token changes': async () => {
    const tokens = await signIn(application, NATIVE, { scope: `openid email ${stage.opaque.scope}` })
    sub = tokens.claims().sub
    const told = await openid.fetchUserInfo(application, tokens.access_token, sub)
    assert.equal(told.email, stage.email)
    const again = await openid.refreshTokenGrant(application, tokens.refresh_token)
    assert.notEqual(again.refresh_token, tokens.refresh_token)
    await openid.tokenRevocation(application, again.refresh_token)
    await refused(openid.refreshTokenGrant(application, again.refresh_token), 'invalid_grant')
  },

  'a confidential client signs a person in by a posted answer': async () => {
    const posted = (back) => new Request(WEB, { method: 'POST', body: back.searchParams })
    const parameters = { scope: `openid ${stage.opaque.scope}`, response_mode: 'form_post' }
    const tokens = await signIn(web, WEB, parameters, posted)
    assert.equal(tokens.claims().sub, sub)
    const again = await openid.refreshTokenGrant(web, tokens.refresh_token, { scope: stage.opaque.scope })
    const told = await openid.tokenIntrospection(web, again.access_token)
    assert.deepEqual([told.active, told.sub, told.scope], [true, sub, again.scope])
    await openid.tokenRevocation(web, tokens.refresh_token, { token_type_hint: 'refresh_token' })
    assert.deepEqual(await openid.tokenIntrospection(web, again.access_token), { active: false })
  },

  'client_credentials, whichever way the client shows who it is': async () => {
    for (const [client, auth] of [
      [stage.confidential, openid.ClientSecretPost(stage.confidential.secret)],
      [stage.document, openid.ClientSecretBasic(stage.document.secret)],
      [stage.by_rsa, openid.PrivateKeyJwt(await privateKey(stage.by_rsa.key))],
      [stage.by_ec, openid.PrivateKeyJwt(await privateKey(stage.by_ec.key))],
    ]) {
      const config = await configured(client, auth)
      const tokens = await openid.clientCredentialsGrant(config, { scope: stage.opaque.scope })
      const told = await openid.tokenIntrospection(config, tokens.access_token)
      assert.equal(told.username, `${client.id}@OAuthClients`)
    }
  },

  'a device is connected': async () => {
    const config = await configured(stage.device, openid.None())
    const device = await openid.initiateDeviceAuthorization(config, { scope: `openid ${stage.opaque.scope}` })
    await connect(device.verification_uri_complete)
    const tokens = await openid.pollDeviceAuthorizationGrant(config, device)
    assert.equal((await openid.fetchUserInfo(config, tokens.access_token, sub)).sub, sub)
  },

  'a token is exchanged for a user': async () => {
    const config = await configured(stage.exchanging, openid.ClientSecretPost(stage.exchanging.secret))
    const tokens = await openid.genericGrantRequest(config, EXCHANGE, {
      subject_token: stage.person,
      subject_token_type: stage.user_id_type,
      scope: stage.opaque.scope,
    })
    const told = await openid.tokenIntrospection(config, tokens.access_token)
    assert.deepEqual([told.active, told.sub], [true, sub])
  },

  'a repository opens until the token is revoked': async () => {
    const tokens = await signIn(application, NATIVE, { scope: 'openid', resource: stage.repository.address })
    const types = new URL(`${stage.repository.address}/types`)
    const opened = await openid.fetchProtectedResource(application, tokens.access_token, types, 'GET')
    assert.equal(opened.status, 200)
    await opened.body.cancel()
    await openid.tokenRevocation(application, tokens.access_token)
    await assert.rejects(
      openid.fetchProtectedResource(application, tokens.access_token, types, 'GET'),
      (caught) => caught instanceof openid.WWWAuthenticateChallengeError && caught.status === 401,
    )
  },
})
