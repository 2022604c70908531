// --set KEY=VALUE and --trials N, put into the tree of a playbook before anything looks at it, so
// that they are checked exactly as if they had been written there.
//
// A value from the command line has no place in the file. Its span carries the number of its option
// instead of a line (kOptionLines + index), until PlaceOf turns it into "--set KEY=VALUE".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "controller/plan/loaded_playbook.h"
#include "labrack/v1/control.pb.h"
#include "storage/base/config/source.h"
#include "storage/base/config/tree.h"

namespace labrack::plan {

class Overrides {
 public:
  // Applies the options of `source` to `document`. KEY is the name of a variable or of an axis, or
  // the path of a field ("trials", "workloads.copy.copy.file"). What names nothing is a problem
  // (LR303).
  void Apply(const v1::PlaybookSource& source, config::Document& document,
             config::Problems& problems);

  // Where a span of the document is, also when it stands for an option.
  Place PlaceOf(const config::Document& document, config::Span span) const;

 private:
  void ApplyOne(const std::string& option, config::Node& root, config::Problems& problems);

  static constexpr std::size_t kOptionLines = 1'000'000'000;
  std::vector<std::string> options_;  // as shown: "--set block=4KiB"
};

}  // namespace labrack::plan
