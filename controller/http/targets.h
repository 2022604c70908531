// The answer to Prometheus' http_sd (prometheus/docs http_sd.md): always the full list, `[]` when
// it is empty, label values as text.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace labrack::http {

struct Target {
  std::string address;  // "host:port"
  std::map<std::string, std::string> labels;
};
std::string TargetsJson(const std::vector<Target>& targets);

// "__meta_labrack_label_" + name, with what Prometheus does not allow in label names replaced.
std::string MetaLabel(const std::string& name);

}  // namespace labrack::http
