// oauth4webapi at every address of the authorization server and at a repository.
import assert from 'node:assert/strict'
import * as oauth from 'oauth4webapi'
import { accessTokenHash, allow, connect, later, privateKey, run, stage } from './stage.mjs'

const NATIVE = 'http://127.0.0.1:50123/callback'
const WEB = 'https://app.example/callback'
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

const issuer = new URL(stage.issuer)
const application = { client_id: stage.public.id }
const web = { client_id: stage.confidential.id }
const none = oauth.None()
const basic = oauth.ClientSecretBasic(stage.confidential.secret)
const person = {}
let server

async function discover(algorithm, at = issuer) {
  return oauth.processDiscoveryResponse(at, await oauth.discoveryRequest(at, { algorithm }))
}

async function signIn(client, auth, redirect, parameters, button) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const nonce = oauth.generateRandomNonce()
  const address = new URL(server.authorization_endpoint)
  address.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: redirect,
    response_type: 'code',
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    max_age: '3600',
    state,
    nonce,
    ...parameters,
  })
  const back = await allow(address, button)
  assert.equal(back.origin + back.pathname, redirect)
  const told = oauth.validateAuthResponse(server, client, back, state)
  const redeem = () => oauth.authorizationCodeGrantRequest(server, client, auth, told, redirect, verifier)
  const response = await redeem()
  const checks = parameters.scope?.includes('openid')
    ? { expectedNonce: nonce, maxAge: 3600, requireIdToken: true }
    : { expectedNonce: oauth.expectNoNonce }
  const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, checks)
  const claims = oauth.getValidatedIdTokenClaims(tokens)
  if (claims) {
    await oauth.validateApplicationLevelSignature(server, response)
    assert.equal(claims.at_hash, await accessTokenHash(tokens.access_token))
  }
  return { tokens, claims, again: redeem }
}

async function refresh(client, auth, token) {
  const response = await oauth.refreshTokenGrantRequest(server, client, auth, token)
  return oauth.processRefreshTokenResponse(server, client, response)
}

async function clientCredentials(client, auth, parameters) {
  const response = await oauth.clientCredentialsGrantRequest(server, client, auth, parameters)
  return oauth.processClientCredentialsResponse(server, client, response)
}

async function exchange(client, auth, parameters) {
  const response = await oauth.genericTokenEndpointRequest(server, client, auth, EXCHANGE, parameters)
  return oauth.processGenericTokenEndpointResponse(server, client, response)
}

async function userInfo(token, sub) {
  const response = await oauth.userInfoRequest(server, application, token)
  return oauth.processUserInfoResponse(server, application, sub, response)
}

async function introspect(client, auth, token) {
  return oauth.processIntrospectionResponse(
    server,
    client,
    await oauth.introspectionRequest(server, client, auth, token),
  )
}

async function revoke(client, auth, token) {
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, auth, token))
}

function validated(token, resource) {
  const request = new Request(resource.address, { headers: { authorization: `Bearer ${token}` } })
  return oauth.validateJwtAccessToken(server, request, resource.address)
}

async function refused(work, error) {
  await assert.rejects(work, (caught) => caught instanceof oauth.ResponseBodyError && caught.error === error)
}

async function challenged(work, expected) {
  await assert.rejects(work, (caught) => {
    assert.ok(caught instanceof oauth.WWWAuthenticateChallengeError, caught.stack)
    assert.equal(caught.status, 401)
    for (const [scheme, parameters] of Object.entries(expected)) {
      const challenge = caught.cause.find((each) => each.scheme === scheme)
      assert.deepEqual({ ...challenge.parameters, ...parameters }, challenge.parameters)
    }
    return true
  })
}

await run({
  'discovery of both kinds': async () => {
    server = await discover('oidc')
    assert.deepEqual(await discover('oauth2'), server)
    assert.equal(server.authorization_response_iss_parameter_supported, true)
  },

  'a public client signs a person in': async () => {
    const scope = `openid profile email groups ${stage.opaque.scope}`
    const { tokens, claims } = await signIn(application, none, NATIVE, { scope })
    Object.assign(person, { sub: claims.sub, tokens })
    assert.equal(tokens.token_type, 'bearer')
  },

  'userinfo is of the same person': async () => {
    const told = await userInfo(person.tokens.access_token, person.sub)
    assert.equal(told.email, stage.email)
    assert.equal(told.preferred_username, stage.person)
    assert.ok(Array.isArray(told.grp))
  },

  'a refresh token changes, and one that was stolen ends the grant': async () => {
    const first = person.tokens.refresh_token
    const second = await refresh(application, none, first)
    assert.notEqual(second.refresh_token, first)
    assert.equal((await refresh(application, none, first)).refresh_token, second.refresh_token)
    const third = await refresh(application, none, second.refresh_token)
    await later(11, () => refused(refresh(application, none, first), 'invalid_grant'))
    await refused(refresh(application, none, third.refresh_token), 'invalid_grant')
    await challenged(userInfo(third.access_token, person.sub), { bearer: { error: 'invalid_token' } })
  },

  'a confidential client signs a person in by a posted answer': async () => {
    const scope = `openid ${stage.opaque.scope}`
    const { tokens, claims } = await signIn(web, basic, WEB, { scope, response_mode: 'form_post' })
    assert.equal(claims.sub, person.sub)
    const again = await refresh(web, basic, tokens.refresh_token)
    person.tokens = { refresh_token: tokens.refresh_token, ...again }
  },

  'introspection tells the client and the resource': async () => {
    const resource = [{ client_id: stage.opaque.id }, oauth.ClientSecretBasic(stage.opaque.secret)]
    for (const [client, auth] of [[web, basic], resource]) {
      const told = await introspect(client, auth, person.tokens.access_token)
      assert.equal(told.active, true)
      assert.equal(told.client_id, web.client_id)
      assert.equal(told.sub, person.sub)
      assert.equal(told.iss, stage.issuer)
      assert.equal(told.aud, stage.opaque.address)
    }
    const other = [{ client_id: stage.rs256.id }, oauth.ClientSecretBasic(stage.rs256.secret)]
    assert.deepEqual(await introspect(...other, person.tokens.access_token), { active: false })
  },

  'revocation by its holder ends the grant with the next request': async () => {
    await revoke(application, none, person.tokens.access_token)
    assert.equal((await introspect(web, basic, person.tokens.access_token)).active, true)
    await revoke(web, basic, person.tokens.access_token)
    assert.deepEqual(await introspect(web, basic, person.tokens.access_token), { active: false })
    await refused(refresh(web, basic, person.tokens.refresh_token), 'invalid_grant')
  },

  'a code serves once': async () => {
    const { tokens, again } = await signIn(web, basic, WEB, { resource: stage.opaque.address })
    await refused(oauth.processAuthorizationCodeResponse(server, web, await again()), 'invalid_grant')
    assert.deepEqual(await introspect(web, basic, tokens.access_token), { active: false })
  },

  'refusals come back to the client': async () => {
    for (const [error, parameters, button] of [
      ['access_denied', { scope: stage.opaque.scope }, 'deny'],
      ['unsupported_response_type', { response_type: 'token' }],
      ['request_uri_not_supported', { request_uri: 'https://app.example/request' }],
      ['invalid_target', { resource: 'https://nowhere.example/' }],
    ]) {
      await assert.rejects(signIn(application, none, NATIVE, parameters, button), (caught) => {
        assert.ok(caught instanceof oauth.AuthorizationResponseError, caught.stack)
        assert.equal(caught.error, error)
        return true
      })
    }
  },

  'client_credentials, whichever way the client shows who it is': async () => {
    for (const [client, auth] of [
      [stage.confidential, oauth.ClientSecretBasic(stage.confidential.secret)],
      [stage.confidential, oauth.ClientSecretPost(stage.confidential.secret)],
      [stage.by_rsa, oauth.PrivateKeyJwt(await privateKey(stage.by_rsa.key))],
      [stage.by_ec, oauth.PrivateKeyJwt(await privateKey(stage.by_ec.key))],
    ]) {
      const asking = { client_id: client.id }
      const tokens = await clientCredentials(asking, auth, { resource: stage.opaque.address })
      assert.equal(tokens.refresh_token, undefined)
      const told = await introspect(asking, auth, tokens.access_token)
      assert.equal(told.username, `${client.id}@OAuthClients`)
      await revoke(asking, auth, tokens.access_token)
      assert.deepEqual(await introspect(asking, auth, tokens.access_token), { active: false })
    }
  },

  'a client whose name is an address authenticates by HTTP Basic': async () => {
    const client = { client_id: stage.document.id }
    const auth = oauth.ClientSecretBasic(stage.document.secret)
    const { tokens } = await signIn(client, auth, WEB, { scope: stage.opaque.scope })
    assert.equal((await introspect(client, auth, tokens.access_token)).client_id, client.client_id)
  },

  'a wrong secret is challenged': async () => {
    const work = clientCredentials(web, oauth.ClientSecretBasic('wrong'), { scope: stage.opaque.scope })
    await challenged(work, { basic: {} })
  },

  'signed access tokens are valid for their resource alone': async () => {
    for (const resource of [stage.rs256, stage.es256]) {
      const scope = `openid ${resource.scope}`
      const { tokens, claims } = await signIn(application, none, NATIVE, { scope })
      const told = await validated(tokens.access_token, resource)
      assert.equal(told.sub, claims.sub)
      assert.equal(told.client_id, application.client_id)
      await assert.rejects(validated(tokens.access_token, stage.opaque))
      await userInfo(tokens.access_token, claims.sub)
    }
  },

  'a device is connected': async () => {
    const client = { client_id: stage.device.id }
    const response = await oauth.deviceAuthorizationRequest(server, client, none, { scope: stage.opaque.scope })
    const device = await oauth.processDeviceAuthorizationResponse(server, client, response)
    const poll = async () => {
      const polled = await oauth.deviceCodeGrantRequest(server, client, none, device.device_code)
      return oauth.processDeviceCodeResponse(server, client, polled)
    }
    await refused(poll(), 'authorization_pending')
    await refused(poll(), 'slow_down')
    await connect(device.verification_uri_complete)
    const tokens = await later(11, poll)
    await later(30, () => refused(poll(), 'invalid_grant'))
    const second = await refresh(client, none, tokens.refresh_token)
    assert.notEqual(second.refresh_token, tokens.refresh_token)
  },

  'a token is exchanged, for a user and with an actor': async () => {
    const client = { client_id: stage.exchanging.id }
    const auth = oauth.ClientSecretPost(stage.exchanging.secret)
    const named = await exchange(client, auth, {
      subject_token: stage.person,
      subject_token_type: stage.user_id_type,
      resource: stage.rs256.address,
    })
    assert.equal(named.issued_token_type, ACCESS_TOKEN)
    assert.equal((await validated(named.access_token, stage.rs256)).sub, person.sub)
    const { tokens } = await signIn(client, auth, WEB, { scope: stage.opaque.scope })
    const actor = await clientCredentials(client, auth, { scope: stage.opaque.scope })
    const delegated = await exchange(client, auth, {
      subject_token: tokens.access_token,
      subject_token_type: ACCESS_TOKEN,
      actor_token: actor.access_token,
      actor_token_type: ACCESS_TOKEN,
      resource: stage.es256.address,
    })
    const told = await validated(delegated.access_token, stage.es256)
    const acting = await introspect(client, auth, actor.access_token)
    assert.equal(told.sub, person.sub)
    assert.equal(told.act.sub, acting.sub)
    await revoke(client, auth, tokens.access_token)
    assert.deepEqual(await introspect(client, auth, delegated.access_token), { active: false })
  },

  'a repository leads to its authorization server and opens': async () => {
    const repository = new URL(stage.repository.address)
    const types = new URL(`${repository}/types`)
    let metadata
    await challenged(
      oauth.protectedResourceRequest('nonsense', 'GET', types).catch(async (caught) => {
        const { parameters } = caught.cause.find((each) => each.scheme === 'bearer')
        const response = await fetch(parameters.resource_metadata)
        metadata = await oauth.processResourceDiscoveryResponse(repository, response)
        throw caught
      }),
      { bearer: { error: 'invalid_token' } },
    )
    const found = await oauth.resourceDiscoveryRequest(repository)
    assert.deepEqual(await oauth.processResourceDiscoveryResponse(repository, found), metadata)
    const [its] = metadata.authorization_servers
    assert.deepEqual(await discover('oauth2', new URL(its)), server)
    const { tokens } = await signIn(application, none, NATIVE, { resource: metadata.resource })
    const opened = await oauth.protectedResourceRequest(tokens.access_token, 'GET', types)
    assert.equal(opened.status, 200)
    await opened.body.cancel()
    await revoke(application, none, tokens.refresh_token)
    await challenged(oauth.protectedResourceRequest(tokens.access_token, 'GET', types), {
      bearer: { error: 'invalid_token' },
    })
  },
})
