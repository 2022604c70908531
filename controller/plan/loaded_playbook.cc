#include "controller/plan/loaded_playbook.h"

namespace labrack::plan {
namespace {

// The place of what encloses `path`; its key, since the value may be many lines long.
Place FindAround(const LoadedPlaybook& playbook, std::string_view path) {
  for (std::size_t cut = path.find_last_of(".["); cut != std::string_view::npos;
       cut = path.find_last_of(".[")) {
    path = path.substr(0, cut);
    const auto key = playbook.places.find(std::string(path) + "#key");
    if (key != playbook.places.end()) return key->second;
    const auto value = playbook.places.find(std::string(path));
    if (value != playbook.places.end()) return value->second;
  }
  return {playbook.file, {}};
}

}  // namespace

Place LoadedPlaybook::Find(std::string_view path) const {
  const auto found = places.find(std::string(path));
  return found != places.end() ? found->second : FindAround(*this, path);
}

Place LoadedPlaybook::FindKey(std::string_view path) const {
  const auto found = places.find(std::string(path) + "#key");
  return found != places.end() ? found->second : FindAround(*this, path);
}

}  // namespace labrack::plan
