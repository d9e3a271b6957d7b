// The certified OpenID Connect provider of the tests: node server.mjs FOLDER PORT
// FOLDER has server.crt, server.key and accounts.json: claims by login, read anew for each request.
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import Provider from 'oidc-provider';

const [folder, port] = process.argv.slice(2);
const read = (name) => readFileSync(`${folder}/${name}`, 'utf8');
const key = (alg, ...options) => ({
  ...generateKeyPairSync(...options).privateKey.export({ format: 'jwk' }), alg, use: 'sig',
});

const client = (alg) => ({
  client_id: `cadastre-${alg}`,
  client_secret: 'a secret of at least thirty-two characters',
  redirect_uris: ['https://testserver/sign-on/callback/'],
  post_logout_redirect_uris: ['https://testserver/admin/login/'],
  id_token_signed_response_alg: alg,
});

const provider = new Provider(`https://localhost:${port}`, {
  clients: ['RS256', 'ES256', 'HS256'].map(client),
  jwks: { keys: [key('RS256', 'rsa', { modulusLength: 2048 }), key('ES256', 'ec', { namedCurve: 'P-256' })] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'HS256'] },
  claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email'], groups: ['groups'] },
  pkce: { methods: ['S256'], required: () => true },
  cookies: { keys: ['of the tests'] },
  findAccount: (_context, login) => {
    const claims = JSON.parse(read('accounts.json'))[login];
    return claims && { accountId: login, claims: () => ({ sub: login, ...claims }) };
  },
});

https.createServer({ cert: read('server.crt'), key: read('server.key') }, provider.callback())
  .listen(Number(port), '127.0.0.1');
