// libyaml's syntax errors in our words. It tells about its own state ("did not find expected key");
// we say what a person did and what would be right.
#pragma once

#include <string_view>

namespace labrack::config {

struct SyntaxText {
  std::string_view problem;  // a part of libyaml's text; empty: any
  std::string_view context;  // a part of libyaml's context; empty: any
  std::string_view code;
  std::string_view message;
  std::string_view help;
  bool at_context = false;  // the place to show is where the construct began
};

// Both texts as libyaml gave them, either may be null. nullptr where we have no better words.
const SyntaxText* FindSyntaxText(const char* problem, const char* context);

}  // namespace labrack::config
