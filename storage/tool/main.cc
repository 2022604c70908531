// labrack-storage: sets of disks by hand. See README.md of this folder.
#include <functional>
#include <map>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "storage/base/check.h"
#include "storage/base/units.h"
#include "storage/tool/commands.h"

namespace labrack::tool {

namespace {

using volume::Kind;

const std::map<std::string, Kind> kKinds = {{"concat", Kind::kConcat},
                                            {"stripe", Kind::kStripe},
                                            {"mirror", Kind::kMirror},
                                            {"raid5", Kind::kRaid5}};
const std::map<std::string, volume::ParityLogMode> kParityLogs = {
    {"prewrite", volume::ParityLogMode::kPrewrite},
    {"ppl", volume::ParityLogMode::kPartialParity},
    {"none", volume::ParityLogMode::kNone}};
const std::map<std::string, volume::ReadPolicy> kReadPolicies = {
    {"round_robin", volume::ReadPolicy::kRoundRobin},
    {"geometric", volume::ReadPolicy::kGeometric},
    {"first", volume::ReadPolicy::kFirst}};
const std::map<std::string, block::FlushMode> kFlushModes = {{"pass", block::FlushMode::kPass},
                                                             {"refuse", block::FlushMode::kRefuse},
                                                             {"drop", block::FlushMode::kDrop}};

// A choice by its name. CLI11's own transformer would print the numbers of the enum.
template <typename T>
CLI::Option* AddChoice(CLI::App& app, const std::string& name,
                       const std::map<std::string, T>& choices, std::function<void(T)> set,
                       const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [word, value] : choices) names.push_back(word);
  return app
      .add_option_function<std::string>(
          name, [&choices, set](const std::string& word) { set(choices.at(word)); }, help)
      ->check(CLI::IsMember(names));
}

template <typename T>
CLI::Option* AddUnit(CLI::App& app, const std::string& name, T& into,
                     Result<T> (*parse)(std::string_view), const std::string& help) {
  return app.add_option_function<std::string>(
      name,
      [&into, parse, name](const std::string& text) {
        const Result<T> value = parse(text);
        if (!value) throw CLI::ValidationError(name, value.error().ToString());
        into = *value;
      },
      help);
}

void AddSet(CLI::App& command, SetOptions& options) {
  command.add_option("disk", options.disks, "The disks of the set, in any order.")->required();
  command.add_flag("--json", options.json, "As JSON.");
}

CLI::App* AddCreate(CLI::App& app, CreateOptions& options) {
  CLI::App* create = app.add_subcommand("create", "Make a set of disks and a volume on it.");
  AddChoice<Kind>(
      *create, "kind", kKinds, [&](Kind kind) { options.kind = kind; },
      "concat, stripe, mirror or raid5.")
      ->required();
  create->add_option("disk", options.disks, "Files; their content is lost.")->required();
  AddChoice<Kind>(
      *create, "--of", kKinds, [&](Kind kind) { options.of = kind; },
      "What stands between the volume and the disks.");
  create->add_option("--submirrors", options.submirrors, "With --of, of a mirror (2).")
      ->check(CLI::Range(2, 8));
  create->add_option("--spare", options.spares, "A hot spare (repeatable).")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->expected(1);
  AddUnit<Bytes>(*create, "--interlace", options.interlace, ParseBytes,
                 "Of stripe and raid5 (64KiB).");
  AddChoice<volume::ParityLogMode>(
      *create, "--parity-log", kParityLogs,
      [&](volume::ParityLogMode mode) { options.parity_log = mode; },
      "Of raid5: prewrite (the default), ppl or none.");
  AddChoice<volume::ReadPolicy>(
      *create, "--read", kReadPolicies,
      [&](volume::ReadPolicy policy) { options.read_policy = policy; },
      "Of mirrors: round_robin (the default), geometric or first.");
  AddChoice<block::FlushMode>(
      *create, "--flush", kFlushModes, [&](block::FlushMode mode) { options.flush = mode; },
      "pass (the default), refuse or drop.");
  create->add_flag("--zeroed", options.zeroed,
                   "The disks are all zeros: parity is right as it is.");
  create->add_flag("--overwrite", options.overwrite, "Also disks that belong to a set.");
  return create;
}

std::uint64_t DrawSetId() {
  std::uint64_t id = 0;
  LABRACK_CHECK(getentropy(&id, sizeof id) == 0);
  return id;
}

int Main(int argc, char** argv) {
  CLI::App app("Makes, shows, checks and mends sets of disks.", "labrack-storage");
  app.require_subcommand(1);
  CreateOptions create;
  create.set_id = DrawSetId();
  SetOptions set;
  BenchOptions bench;
  AddCreate(app, create)->callback([&] { throw CLI::RuntimeError(ToInt(Create(create))); });
  const auto add = [&](const char* name, const char* help, ExitCode (*run)(const SetOptions&)) {
    CLI::App* command = app.add_subcommand(name, help);
    AddSet(*command, set);
    command->callback([&set, run] { throw CLI::RuntimeError(ToInt(run(set))); });
  };
  add("info", "Which disks and volumes a set has, and their states.", Info);
  add("check", "Compare all that is redundant.", Check);
  add("resync", "Make whole what can be.", Resync);
  CLI::App* bench_command = app.add_subcommand("bench", "Blocks at random places of the volume.");
  AddSet(*bench_command, bench.set);
  AddUnit<Bytes>(*bench_command, "--block", bench.block, ParseBytes, "Bytes of each (4KiB).");
  bench_command->add_option("--depth", bench.depth, "How many at once (1).")
      ->check(CLI::Range(1, 4096));
  AddUnit<Nanoseconds>(*bench_command, "--duration", bench.duration, ParseDuration,
                       "How long (5s).");
  bench_command->add_flag("--write", bench.write, "Write, over what the volume holds.");
  bench_command->callback([&] { throw CLI::RuntimeError(ToInt(Bench(bench))); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& ended) {
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ToInt(ExitCode::kPassed) : ToInt(ExitCode::kUsage);
  }
  return ToInt(ExitCode::kPassed);
}

}  // namespace
}  // namespace labrack::tool

int main(int argc, char** argv) { return labrack::tool::Main(argc, argv); }
