// Short ways to make problems at places of a playbook.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controller/plan/loaded_playbook.h"
#include "storage/base/config/source.h"

namespace labrack::plan {

// Notes of one problem; a fleet of a thousand hosts must not print a thousand lines.
inline constexpr std::size_t kNotesMax = 8;

struct Finding {
  std::string code;
  std::string message;
  std::string label;
  std::vector<std::string> notes;
  std::vector<std::string> helps;
};

inline config::Problem At(const Place& place, Finding finding) {
  if (finding.notes.size() > kNotesMax) {
    const std::size_t more = finding.notes.size() - kNotesMax + 1;
    finding.notes.resize(kNotesMax - 1);
    finding.notes.push_back("and " + std::to_string(more) + " more");
  }
  return {std::move(finding.code),
          std::move(finding.message),
          place.file,
          place.span,
          std::move(finding.label),
          std::move(finding.notes),
          std::move(finding.helps)};
}

// "`a`, `b`, `c`", with the bound of kNotesMax.
inline std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNotesMax; ++i) {
    text += (i == 0 ? "`" : ", `") + names[i] + "`";
  }
  if (names.size() > kNotesMax)
    text += " and " + std::to_string(names.size() - kNotesMax) + " more";
  return text;
}

// "1 host", "2 hosts".
inline std::string Count(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace labrack::plan
