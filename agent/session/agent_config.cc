#include "agent/session/agent_config.h"

#include "agent/session/connection.h"
#include "proto/fields/fields.h"
#include "storage/base/config/tree.h"

namespace labrack::session {
namespace {

void AddProblem(const std::string& file, const fields::Places& places, const std::string& path,
                std::string code, std::string message, std::string help,
                config::Problems& problems) {
  config::Problem problem;
  problem.code = std::move(code);
  problem.message = std::move(message);
  problem.file = file;
  const auto place = places.find(path);
  if (place != places.end()) problem.span = place->second;
  problem.helps.push_back(std::move(help));
  problems.Add(std::move(problem));
}

}  // namespace

bool LoadConfig(const std::string& file, v1::AgentConfig& config, std::string& text,
                config::Problems& problems) {
  config::Document document;
  const bool read = config::ReadYamlFile(file, {}, document, problems);
  text = document.text;
  if (!read) return false;
  fields::Places places;
  if (!fields::Bind(document, document.root, config, places, problems)) return false;
  if (!IsLoopback(config.controller()) && !config.has_tls()) {
    AddProblem(file, places, "controller", "LR350",
               "the controller is on another machine, and there are no certificates",
               "add `tls: {ca: FILE, certificate: FILE, key: FILE}`; without it only a loopback "
               "address such as 127.0.0.1:7481 is allowed",
               problems);
  }
  return problems.empty();
}

}  // namespace labrack::session
