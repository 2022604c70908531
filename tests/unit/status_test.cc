// Goal: an error is the same after its way through gRPC, in code and words. Method: there and back
// for every code.
#include <gtest/gtest.h>

#include "proto/convert/convert.h"

namespace labrack::convert {
namespace {

TEST(StatusTest, AnErrorIsTheSameAfterTheWayThereAndBack) {
  for (int number = 0; number <= static_cast<int>(Errc::kInternal); ++number) {
    const auto code = static_cast<Errc>(number);
    for (const Error& error : {Error(code), Error(code, "a note"), Error(code, "r-1", "a note")}) {
      const Error back = FromStatus(ToStatus(error));
      EXPECT_EQ(back.code(), code);
      EXPECT_EQ(FromStatus(ToStatus(back)).ToString(), back.ToString());
      if (!error.note().empty()) EXPECT_EQ(back.ToString(), error.ToString());
    }
  }
}

}  // namespace
}  // namespace labrack::convert
