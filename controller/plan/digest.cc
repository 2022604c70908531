#include "controller/plan/digest.h"

#include <array>
#include <map>
#include <memory>
#include <string_view>

#include <openssl/evp.h>

#include "storage/base/check.h"

namespace labrack::plan {
namespace {

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    LABRACK_CHECK(context_ != nullptr);
    LABRACK_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }

  // Each part with its length in front, so that two parts never run into each other.
  void Add(std::string_view part) {
    const std::string length = std::to_string(part.size()) + ":";
    LABRACK_CHECK(EVP_DigestUpdate(context_.get(), length.data(), length.size()) == 1);
    LABRACK_CHECK(EVP_DigestUpdate(context_.get(), part.data(), part.size()) == 1);
  }

  std::string Hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    LABRACK_CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < size; ++i) {
      text += kDigits[digest[i] >> 4];
      text += kDigits[digest[i] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string DigestOf(const v1::PlaybookSource& source) {
  Sha256 hash;
  hash.Add(source.text());
  for (const auto& [path, text] : std::map<std::string, std::string>(source.attachments().begin(),
                                                                     source.attachments().end())) {
    hash.Add(path);
    hash.Add(text);
  }
  for (const std::string& option : source.set()) hash.Add(option);
  hash.Add(std::to_string(source.trials()));
  return hash.Hex();
}

}  // namespace labrack::plan
