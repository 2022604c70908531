#include "controller/cli/settings.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace labrack::cli {
namespace {

constexpr config::Limits kLimits = {.bytes_max = 64 << 10, .depth_max = 4, .nodes_max = 1000};

std::string Lookup(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

const Option* FindSetting(const std::vector<Option>& declared, const std::string& name) {
  const auto found = std::ranges::find_if(declared, [&](const Option& option) {
    return option.name == name && option.sources == Sources::kAll;
  });
  return found == declared.end() ? nullptr : &*found;
}

config::Problem At(const std::string& file, config::Span span, const char* code) {
  config::Problem problem;
  problem.code = code;
  problem.file = file;
  problem.span = span;
  return problem;
}

config::Problem UnknownKey(const std::string& file, const config::Node::Entry& entry,
                           const std::vector<Option>& declared) {
  config::Problem problem = At(file, entry.key_span, "LR203");
  problem.message = fmt::format("unknown setting `{}`", entry.key);
  std::vector<std::string> names;
  for (const Option& option : declared) {
    if (option.name == entry.key) {
      problem.label = "cannot be set in a file";
      problem.helps = {fmt::format("write --{} on the command line", option.name)};
      return problem;
    }
    if (option.sources == Sources::kAll) names.emplace_back(option.name);
  }
  const std::string nearest = config::Nearest(entry.key, names);
  problem.helps = {nearest.empty() ? fmt::format("the settings are {}", fmt::join(names, ", "))
                                   : fmt::format("did you mean `{}`?", nearest)};
  return problem;
}

config::Problem WrongValue(const std::string& file, const config::Node::Entry& entry,
                           const std::string& note) {
  const std::size_t cut = note.find("; ");
  config::Problem problem = At(file, entry.value.span, "LR206");
  problem.message = fmt::format("{}: {}", entry.key, note.substr(0, cut));
  if (cut != std::string::npos) problem.helps = {note.substr(cut + 2)};
  return problem;
}

}  // namespace

std::vector<std::string> SettingFiles(const Environment& environment) {
  std::vector<std::string> files = {"./.labrack.yaml"};
  const std::string home = Lookup(environment, "HOME");
  const std::string config = Lookup(environment, "XDG_CONFIG_HOME");
  if (config.starts_with('/')) {
    files.push_back(config + "/labrack/config.yaml");
  } else if (!home.empty()) {
    files.push_back(home + "/.config/labrack/config.yaml");
  }
  files.push_back("/etc/labrack/client.yaml");
  // A file that cannot be looked at is kept: reading it says why.
  std::erase_if(files, [](const std::string& file) {
    std::error_code error;
    return std::filesystem::status(file, error).type() == std::filesystem::file_type::not_found;
  });
  return files;
}

bool ReadSettings(const std::string& file, const std::vector<Option>& declared,
                  config::Document& document, SettingMap& settings, config::Problems& problems) {
  const std::size_t before = problems.total();
  if (!config::ReadYamlFile(file, kLimits, document, problems)) return false;
  if (document.root.kind != config::Node::Kind::kMap) {
    config::Problem problem = At(file, document.root.span, "LR201");
    problem.message = "a configuration file is a mapping of settings";
    problem.helps = {"write one `name: value` a line"};
    problems.Add(std::move(problem));
    return false;
  }
  for (const config::Node::Entry& entry : document.root.entries) {
    const Option* option = FindSetting(declared, entry.key);
    if (option == nullptr) {
      problems.Add(UnknownKey(file, entry, declared));
      continue;
    }
    if (entry.value.kind != config::Node::Kind::kScalar) {
      problems.Add(WrongValue(
          file, entry, fmt::format("a {} stands where one value belongs", entry.value.KindName())));
      continue;
    }
    if (Result<void> right = CheckValue(*option, entry.value.text); !right) {
      problems.Add(WrongValue(file, entry, right.error().note()));
      continue;
    }
    settings.try_emplace(
        entry.key, Setting{.text = entry.value.text,
                           .origin = fmt::format("{}:{}:{}", file, entry.value.span.begin.line,
                                                 entry.value.span.begin.column)});
  }
  return problems.total() == before;
}

}  // namespace labrack::cli
