// What must hold for every text that is read as a playbook, right or wrong. Shared by the fuzzer
// and by the seeded mutation test.
#pragma once

#include <string>
#include <string_view>

namespace labrack {

// Reads, binds and prints `text`. The answer is what does not hold, or "":
//   - a text that is not taken has at least one problem, one that is taken has none;
//   - every place, in the tree, of a problem and in Places, lies inside the text;
//   - what is printed holds no control character but line feeds, and is bounded;
//   - a playbook that Bind took is right for Check too.
std::string BrokenYamlProperty(std::string_view text);

}  // namespace labrack
