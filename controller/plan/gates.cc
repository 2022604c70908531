#include "controller/plan/gates.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "controller/plan/names.h"
#include "storage/base/config/source.h"

namespace labrack::plan {
namespace {

// What each form of gate is written with.
struct Form {
  std::string_view key;
  std::vector<std::string_view> needs;
  std::vector<std::string_view> may;
};
const std::array<Form, 5>& Forms() {
  static const std::array<Form, 5> forms{{
      {"faster", {"than", "on"}, {"by", "host"}},
      {"not_slower", {"than", "on"}, {"within", "host"}},
      {"same", {"as", "on"}, {"within", "host"}},
      {"verified", {}, {"host"}},
      {"latency", {"on", "below"}, {"percentile", "host"}},
  }};
  return forms;
}
constexpr std::array<std::string_view, 7> kOtherKeys{"than",   "as",         "on",   "by",
                                                     "within", "percentile", "below"};

class GateCheck {
 public:
  GateCheck(const LoadedPlaybook& playbook, const GivenNames& names, int index, Reporter& reporter)
      : playbook_(playbook),
        names_(names),
        gate_(playbook.playbook.gates(index)),
        path_("gates[" + std::to_string(index) + "]"),
        reporter_(reporter) {}

  void Run() {
    const Form* form = FindForm();
    if (form == nullptr || !CheckKeys(*form)) return;
    if (form->key == "verified") return;
    const std::string& stack = StackOf(*form);
    const std::string& other = gate_.than().empty() ? gate_.as() : gate_.than();
    bool known = CheckName(PlaceOf(form->key), "stack", stack, names_.stacks, reporter_);
    if (form->key != "latency") {
      const char* key = gate_.than().empty() ? "as" : "than";
      known &= CheckName(PlaceOf(key), "stack", other, names_.stacks, reporter_);
      if (known && stack == other) {
        reporter_.Add(PlaceOf(key), {"LR312",
                                     "stack `" + stack + "` is compared with itself",
                                     "",
                                     {},
                                     {"name another stack"}});
        return;
      }
    }
    const std::string workload = gate_.on().substr(0, gate_.on().find('/'));
    if (!CheckName(PlaceOf("on"), "workload", workload, names_.workloads, reporter_)) return;
    if (names_.wrong_paths.contains("workloads." + workload) || !known) return;
    CheckStep(workload);
    CheckCells(stack, workload);
    if (form->key != "latency") CheckCells(other, workload);
  }

 private:
  bool Written(std::string_view key) const {
    return playbook_.places.contains(path_ + "." + std::string(key));
  }
  Place PlaceOf(std::string_view key) const {
    return playbook_.Find(path_ + "." + std::string(key));
  }
  Place KeyPlace(std::string_view key) const {
    return playbook_.FindKey(path_ + "." + std::string(key));
  }

  const std::string& StackOf(const Form& form) const {
    if (form.key == "faster") return gate_.faster();
    if (form.key == "not_slower") return gate_.not_slower();
    return form.key == "same" ? gate_.same() : gate_.latency();
  }

  const Form* FindForm() {
    std::vector<const Form*> written;
    for (const Form& form : Forms()) {
      if (Written(form.key)) written.push_back(&form);
    }
    if (written.size() == 1) return written[0];
    if (written.empty()) {
      reporter_.Add(playbook_.Find(path_),
                    {"LR311",
                     "the gate claims nothing",
                     "",
                     {},
                     {"write one of `faster`, `not_slower`, `same`, `verified`, `latency`"}});
    } else {
      reporter_.Add(KeyPlace(written[1]->key),
                    {"LR311",
                     "`" + std::string(written[0]->key) + "` and `" + std::string(written[1]->key) +
                         "` are two claims",
                     "",
                     {},
                     {"write two gates, one claim each"}});
    }
    return nullptr;
  }

  bool CheckKeys(const Form& form) {
    const std::string claim = "a gate with `" + std::string(form.key) + "`";
    std::vector<std::string_view> missing;
    std::vector<std::string_view> foreign;
    for (std::string_view key : kOtherKeys) {
      const bool needed = std::ranges::find(form.needs, key) != form.needs.end();
      const bool allowed = needed || std::ranges::find(form.may, key) != form.may.end();
      if (needed && !Written(key)) missing.push_back(key);
      if (!allowed && Written(key)) foreign.push_back(key);
    }
    for (std::string_view key : foreign) {
      reporter_.Add(KeyPlace(key), {"LR311",
                                    "`" + std::string(key) + "` does not belong to " + claim,
                                    "",
                                    {},
                                    {"write " + Shape(form)}});
    }
    // `than` for `as` is one mistake, not two.
    if (!missing.empty() && foreign.empty()) {
      std::vector<std::string> names(missing.begin(), missing.end());
      reporter_.Add(KeyPlace(form.key),
                    {"LR311", claim + " needs " + Listed(names), "", {}, {"write " + Shape(form)}});
    }
    return missing.empty() && foreign.empty() && CheckZero();
  }

  // Zero stands for "left out" in the message, and has no meaning of its own here either.
  bool CheckZero() {
    if (Written("within") && gate_.within() == 0) {
      reporter_.Add(PlaceOf("within"),
                    {"LR311",
                     "no measurement can show a difference of less than 0%",
                     "",
                     {},
                     {"give a share above 0%, or leave `within` out for the playbook's margin"}});
      return false;
    }
    if (Written("percentile") && gate_.percentile() == 0) {
      reporter_.Add(PlaceOf("percentile"), {"LR311",
                                            "0% of the operations have no latency",
                                            "",
                                            {},
                                            {"write the percentile as 99% or 99.9%"}});
      return false;
    }
    return true;
  }

  // "{faster: ..., than: ..., on: ...}, with `by`, `host` if wanted".
  static std::string Shape(const Form& form) {
    std::string text = "`{" + std::string(form.key) + ": " + (form.needs.empty() ? "all" : "...");
    for (std::string_view key : form.needs) text += ", " + std::string(key) + ": ...";
    text += "}`, with ";
    for (std::size_t i = 0; i < form.may.size(); ++i) {
      text += (i == 0 ? "`" : ", `") + std::string(form.may[i]) + "`";
    }
    return text + " if wanted";
  }

  const ExpandedCell* FirstCell(const std::string& workload) const {
    const auto cell = std::ranges::find_if(playbook_.cells, [&](const ExpandedCell& candidate) {
      return candidate.workload.name() == workload;
    });
    return cell == playbook_.cells.end() ? nullptr : &*cell;
  }

  void CheckStep(const std::string& workload) {
    const ExpandedCell* cell = FirstCell(workload);
    if (cell == nullptr) return;  // CheckCells says so
    const std::vector<std::string> steps = StepNames(cell->workload);
    const std::size_t slash = gate_.on().find('/');
    if (slash != std::string::npos) {
      const std::string step = gate_.on().substr(slash + 1);
      CheckName(PlaceOf("on"), "step of `" + workload + "`:", step, steps, reporter_);
    } else if (steps.size() > 1) {
      reporter_.Add(PlaceOf("on"), {"LR310",
                                    "`" + workload + "` has several steps",
                                    "",
                                    {"its steps are " + Listed(steps)},
                                    {"say which one, as in `" + workload + "/" + steps[0] + "`"}});
    }
    if (!gate_.latency().empty() && cell->workload.has_exec()) {
      reporter_.Add(PlaceOf("on"), {"LR311",
                                    "a command has no latencies",
                                    "",
                                    {},
                                    {"use a gate on its time: `faster`, `not_slower` or `same`"}});
    }
  }

  void CheckCells(const std::string& stack, const std::string& workload) {
    const bool there = std::ranges::any_of(playbook_.cells, [&](const ExpandedCell& cell) {
      return cell.stack.name() == stack && cell.workload.name() == workload;
    });
    if (there || names_.wrong_paths.contains("stacks." + stack)) return;
    reporter_.Add(PlaceOf("on"), {"LR310",
                                  "`" + workload + "` is not run on stack `" + stack + "`",
                                  "",
                                  {"`include` or `exclude` leave it out"},
                                  {"keep the cell, or leave the gate out"}});
  }

  const LoadedPlaybook& playbook_;
  const GivenNames& names_;
  const v1::Gate& gate_;
  const std::string path_;
  Reporter& reporter_;
};

}  // namespace

bool CheckName(const Place& place, const std::string& what, const std::string& name,
               const std::vector<std::string>& known, Reporter& reporter) {
  if (std::ranges::find(known, name) != known.end()) return true;
  const std::string near = config::Nearest(name, known);
  const std::string help = known.empty()  ? "the playbook gives none; leave it out"
                           : near.empty() ? "write one of " + Listed(known)
                                          : "did you mean `" + near + "`?";
  reporter.Add(place, {"LR310", "there is no " + what + " `" + name + "`", "", {}, {help}});
  return false;
}

void CheckBase(const LoadedPlaybook& playbook, const GivenNames& names, Reporter& reporter) {
  if (playbook.playbook.base().empty()) return;
  CheckName(playbook.Find("base"), "stack", playbook.playbook.base(), names.stacks, reporter);
}

void CheckGates(const LoadedPlaybook& playbook, const GivenNames& names, Reporter& reporter) {
  for (int i = 0; i < playbook.playbook.gates_size(); ++i) {
    if (names.wrong_paths.contains("gates[" + std::to_string(i) + "]")) continue;
    GateCheck(playbook, names, i, reporter).Run();
  }
}

}  // namespace labrack::plan
