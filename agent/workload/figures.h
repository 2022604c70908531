// Named figures out of what a command printed, by regular expression (RE2: no pattern and no output
// can make it run away).
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "labrack/v1/result.pb.h"
#include "labrack/v1/workload.pb.h"
#include "storage/base/result.h"

namespace labrack::workload {

class FigureReader {
 public:
  // Errors: kInvalidArgument for a pattern that is none, or that has no group.
  static Result<FigureReader> Create(std::vector<v1::ExecFigure> figures);

  FigureReader(FigureReader&&) noexcept;
  FigureReader& operator=(FigureReader&&) noexcept;
  ~FigureReader();

  // Of each figure the last match in any line. kNotFound where a figure is not there, kCorrupt
  // where its group is no number: a result without it would be no result.
  Result<std::vector<v1::Figure>> Read(std::string_view output) const;

 private:
  struct Pattern;
  explicit FigureReader(std::vector<Pattern> patterns);
  std::vector<Pattern> patterns_;
};

}  // namespace labrack::workload
