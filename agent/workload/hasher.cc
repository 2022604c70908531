#include "agent/workload/hasher.h"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "storage/base/check.h"

// Inline, so that the compiler's own vector width is used and no call is paid for a small block.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace labrack::workload {
namespace {

class Md5 final : public Hasher {
 public:
  Md5() : context_(EVP_MD_CTX_new()) {
    LABRACK_CHECK(context_ != nullptr);
    LABRACK_CHECK(EVP_DigestInit_ex(context_.get(), EVP_md5(), nullptr) == 1);
  }
  void Add(ConstView data) override {
    LABRACK_CHECK(EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1);
  }
  std::string Hex() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    LABRACK_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &length) == 1);
    std::string text;
    for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

class Xxh3 final : public Hasher {
 public:
  Xxh3() : state_(XXH3_createState()) {
    LABRACK_CHECK(state_ != nullptr);
    XXH3_64bits_reset(state_.get());
  }
  void Add(ConstView data) override {
    LABRACK_CHECK(XXH3_64bits_update(state_.get(), data.data(), data.size()) == XXH_OK);
  }
  std::string Hex() override { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace

std::unique_ptr<Hasher> MakeHasher(v1::HashKind kind) {
  if (kind == v1::HASH_KIND_XXH3) return std::make_unique<Xxh3>();
  return std::make_unique<Md5>();
}

std::string_view HashName(v1::HashKind kind) { return kind == v1::HASH_KIND_XXH3 ? "xxh3" : "md5"; }

}  // namespace labrack::workload
