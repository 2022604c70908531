// Goal: no text, however broken, makes the reader, the binder or the printer crash, hang, or point
// outside the text. Method: libFuzzer with coverage of our own code.
//   build/release/tests/yaml_fuzz -max_total_time=600 NEW_DIR tests/fuzz/corpus/yaml
// A find is minimised with -minimize_crash=1, mended, and added to the corpus.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/yaml_property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string broken =
      labrack::BrokenYamlProperty(std::string_view(reinterpret_cast<const char*>(data), size));
  if (broken.empty()) return 0;
  std::fprintf(stderr, "property broken: %s\n", broken.c_str());
  std::abort();
}
