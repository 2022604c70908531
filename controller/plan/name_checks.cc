#include "controller/plan/name_checks.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace labrack::plan {
namespace {

constexpr std::array<std::string_view, 3> kSectionsWithNames{"disks", "stacks", "workloads"};

}  // namespace

void NameChecks::Run() {
  if (document_.root.kind != config::Node::Kind::kMap) return;
  for (const config::Node::Entry& entry : document_.root.entries) {
    if (std::ranges::find(kSectionsWithNames, entry.key) != kSectionsWithNames.end()) {
      CheckUses(entry.value);
    } else if (entry.key != "summary") {
      RefuseUses(entry);
    }
  }
  CheckAxes();
}

void NameChecks::CheckUses(const config::Node& section) {
  const std::vector<std::string> known = names_.All();
  for (const NameUse& use : UsesIn(section)) {
    if (!use.well_formed) {
      muted_.emplace(use.scalar.begin.line, use.scalar.begin.column);
      reporter_.Add(At(use.span), {"LR304",
                                   "`${` is not followed by a name and `}`",
                                   "",
                                   {"names are lower-case letters, digits and `_`"},
                                   {"write `${name}`; a plain `${` is written `$${`"}});
      continue;
    }
    used_.insert(use.name);
    if (std::ranges::find(known, use.name) != known.end()) continue;
    undefined_ = true;
    muted_.emplace(use.scalar.begin.line, use.scalar.begin.column);
    const std::string near = config::Nearest(use.name, known);
    reporter_.Add(At(use.span), {"LR301",
                                 "`" + use.name + "` is not defined",
                                 "",
                                 {},
                                 {near.empty() ? "give it a value: `vars: {" + use.name + ": ...}`"
                                               : "did you mean `${" + near + "}`?"}});
  }
}

void NameChecks::RefuseUses(const config::Node::Entry& section) {
  for (const NameUse& use : UsesIn(section.value)) {
    muted_.emplace(use.scalar.begin.line, use.scalar.begin.column);
    reporter_.Add(At(use.span),
                  {"LR302",
                   "names are not replaced in `" + section.key + "`",
                   "",
                   {"`${name}` works in `stacks`, `workloads` and `disks`"},
                   {section.value.kind != config::Node::Kind::kScalar
                        ? "write the value itself"
                        : "write the value itself; `--set " + section.key + "=...` changes it"}});
  }
}

void NameChecks::CheckAxes() {
  for (const NamedAxis& axis : names_.axes) {
    if (names_.vars.contains(axis.name)) {
      reporter_.Add(At(axis.key_span),
                    {"LR305",
                     "`" + axis.name + "` is a variable and an axis of the matrix",
                     "",
                     {},
                     {"take one of them out of `vars` or `matrix`"}});
    }
    // A misspelt use is one mistake, not two.
    if (!used_.contains(axis.name) && !undefined_) {
      reporter_.Add(At(axis.key_span),
                    {"LR305",
                     "nothing uses the axis `" + axis.name + "`",
                     "",
                     {"an axis makes cells of its own only where `${" + axis.name + "}` stands"},
                     {"use it in a stack, a workload or `disks`, or leave it out"}});
    }
    std::set<std::string> seen;
    for (const NamedValue& value : axis.values) {
      if (seen.insert(value.text).second) continue;
      reporter_.Add(At(value.span),
                    {"LR305",
                     "`" + value.text + "` stands twice in the axis `" + axis.name + "`",
                     "",
                     {},
                     {"list each value once; `trials` repeats cells"}});
    }
  }
}

}  // namespace labrack::plan
