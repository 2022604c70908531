// MD5 (OpenSSL) and XXH3 (64 bits) behind one face.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "labrack/v1/workload.pb.h"
#include "storage/base/bytes.h"

namespace labrack::workload {

class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void Add(ConstView data) = 0;
  virtual std::string Hex() = 0;  // once, at the end
};

std::unique_ptr<Hasher> MakeHasher(v1::HashKind kind);
std::string_view HashName(v1::HashKind kind);  // "md5"

}  // namespace labrack::workload
