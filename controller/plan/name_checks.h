// Checks of ${names} before they are put in.
#pragma once

#include <set>

#include "controller/plan/overrides.h"
#include "controller/plan/reporter.h"
#include "controller/plan/substitution.h"
#include "storage/base/config/tree.h"

namespace labrack::plan {

// Beginnings of values that are known to be wrong: what Bind would say about them is left out.
using Muted = std::set<std::pair<std::size_t, std::size_t>>;

class NameChecks {
 public:
  NameChecks(const config::Document& document, const Names& names, const Overrides& overrides,
             Reporter& reporter, Muted& muted)
      : document_(document),
        names_(names),
        overrides_(overrides),
        reporter_(reporter),
        muted_(muted) {}

  void Run();

 private:
  void CheckUses(const config::Node& section);          // names must be defined
  void RefuseUses(const config::Node::Entry& section);  // names have no effect here
  void CheckAxes();
  Place At(config::Span span) const { return overrides_.PlaceOf(document_, span); }

  const config::Document& document_;
  const Names& names_;
  const Overrides& overrides_;
  Reporter& reporter_;
  Muted& muted_;
  std::set<std::string> used_;
  bool undefined_ = false;
};

}  // namespace labrack::plan
