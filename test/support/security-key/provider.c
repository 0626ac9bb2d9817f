/*
 * A security key in software, for tests: a provider for OpenSSH (its sk-api.h, version 10) that makes and uses Ed25519 keys. The
 * key handle is the secret itself, so that nothing is kept. It counts a touch as done where one is asked for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#define SK_ED25519 0x01
#define SK_USER_PRESENCE 0x01
#define SK_ERR_GENERAL -1
#define SK_ERR_UNSUPPORTED -2
#define SEED 32
#define SIGNATURE 64

struct sk_option;

struct sk_enroll_response {
  uint8_t flags;
  uint8_t *public_key;
  size_t public_key_len;
  uint8_t *key_handle;
  size_t key_handle_len;
  uint8_t *signature;
  size_t signature_len;
  uint8_t *attestation_cert;
  size_t attestation_cert_len;
  uint8_t *authdata;
  size_t authdata_len;
};

struct sk_sign_response {
  uint8_t flags;
  uint32_t counter;
  uint8_t *sig_r;
  size_t sig_r_len;
  uint8_t *sig_s;
  size_t sig_s_len;
};

struct sk_resident_key;

uint32_t sk_api_version(void) { return 0x000a0000; }

int sk_enroll(uint32_t alg, const uint8_t *challenge, size_t challenge_len, const char *application, uint8_t flags,
    const char *pin, struct sk_option **options, struct sk_enroll_response **response)
{
  (void)challenge; (void)challenge_len; (void)application; (void)pin; (void)options;
  if (alg != SK_ED25519)
    return SK_ERR_UNSUPPORTED;
  struct sk_enroll_response *made = calloc(1, sizeof *made);
  made->flags = flags;
  made->key_handle = malloc(made->key_handle_len = SEED);
  made->public_key = malloc(made->public_key_len = 32);
  made->signature = calloc(1, made->signature_len = 1);
  if (RAND_bytes(made->key_handle, SEED) != 1)
    return SK_ERR_GENERAL;
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, made->key_handle, SEED);
  if (key == NULL || EVP_PKEY_get_raw_public_key(key, made->public_key, &made->public_key_len) != 1)
    return SK_ERR_GENERAL;
  EVP_PKEY_free(key);
  *response = made;
  return 0;
}

int sk_sign(uint32_t alg, const uint8_t *data, size_t data_len, const char *application, const uint8_t *handle,
    size_t handle_len, uint8_t flags, const char *pin, struct sk_option **options, struct sk_sign_response **response)
{
  (void)pin; (void)options;
  if (alg != SK_ED25519 || handle_len != SEED)
    return SK_ERR_UNSUPPORTED;
  struct sk_sign_response *made = calloc(1, sizeof *made);
  made->flags = flags & SK_USER_PRESENCE;
  made->counter = 7;
  made->sig_r = malloc(made->sig_r_len = SIGNATURE);
  uint8_t signedData[32 + 5 + 32];
  SHA256((const uint8_t *)application, strlen(application), signedData);
  const uint8_t said[5] = { made->flags, 0, 0, 0, 7 };
  memcpy(signedData + 32, said, sizeof said);
  SHA256(data, data_len, signedData + 37);
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, handle, SEED);
  EVP_MD_CTX *context = EVP_MD_CTX_new();
  int ok = key != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
      EVP_DigestSign(context, made->sig_r, &made->sig_r_len, signedData, sizeof signedData) == 1;
  EVP_MD_CTX_free(context);
  EVP_PKEY_free(key);
  *response = made;
  return ok ? 0 : SK_ERR_GENERAL;
}

int sk_load_resident_keys(const char *pin, struct sk_option **options, struct sk_resident_key ***keys, size_t *count)
{
  (void)pin; (void)options;
  *keys = NULL;
  *count = 0;
  return 0;
}
