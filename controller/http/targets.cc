#include "controller/http/targets.h"

#include <nlohmann/json.hpp>

namespace labrack::http {

std::string TargetsJson(const std::vector<Target>& targets) {
  nlohmann::json list = nlohmann::json::array();
  for (const Target& target : targets) {
    list.push_back(
        {{"targets", nlohmann::json::array({target.address})}, {"labels", target.labels}});
  }
  return list.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

std::string MetaLabel(const std::string& name) {
  std::string label = "__meta_labrack_label_";
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    label += plain ? c : '_';
  }
  return label;
}

}  // namespace labrack::http
