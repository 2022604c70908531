// ${name}: variables and axes of the matrix, put into the scalars of stacks, workloads and disks.
// It is one pass over each scalar: values are put in as they are written and are not looked at
// again, so that nothing grows beyond (length of text) x (length of a value). `$${` stands for
// `${`.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "storage/base/config/source.h"
#include "storage/base/config/tree.h"

namespace labrack::plan {

struct NamedValue {
  std::string text;
  config::Span span;
};
struct NamedAxis {
  std::string name;
  std::vector<NamedValue> values;
  config::Span key_span;
};

// What `vars` and `matrix` of a playbook say. Parts of the wrong kind are left out: Bind reports
// them.
struct Names {
  std::map<std::string, NamedValue> vars;
  std::vector<NamedAxis> axes;  // in the order written

  static Names Read(const config::Node& root);
  std::vector<std::string> All() const;
};

// Chosen values: name -> value.
using Assignment = std::map<std::string, std::string>;

// A use of ${name} within a scalar.
struct NameUse {
  std::string name;
  config::Span span;  // of ${name} itself where that can be told, else of the scalar
  config::Span scalar;
  bool well_formed = true;  // "${" with a name and "}"
};
std::vector<NameUse> UsesIn(const config::Node& node);
std::set<std::string> NamesIn(const config::Node& node);

// A copy with all names of the assignment put in; others are left as they stand. Spans stay those
// of what the user wrote.
config::Node Substitute(const config::Node& node, const Assignment& assignment);

}  // namespace labrack::plan
