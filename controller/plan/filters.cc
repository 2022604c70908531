#include "controller/plan/filters.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace labrack::plan {
namespace {

class FilterRun {
 public:
  FilterRun(LoadedPlaybook& playbook, const GivenNames& names, const Names& axes,
            Reporter& reporter)
      : playbook_(playbook), names_(names), axes_(axes), reporter_(reporter) {}

  void Run() {
    const v1::Playbook& spec = playbook_.playbook;
    std::vector<bool> keep(playbook_.cells.size(), spec.include().empty());
    Mark("include", spec.include(), keep, true);
    Mark("exclude", spec.exclude(), keep, false);
    if (!right_) return;  // what a wrong item leaves out is not known
    std::vector<ExpandedCell> kept;
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i]) kept.push_back(std::move(playbook_.cells[i]));
    }
    if (kept.empty() && !keep.empty()) {
      reporter_.Add(playbook_.FindKey(spec.exclude().empty() ? "include" : "exclude"),
                    {"LR308",
                     "no cell is left to run",
                     "",
                     {},
                     {"let some cell match `include` and none of `exclude`"}});
    }
    playbook_.cells = std::move(kept);
  }

 private:
  using Items = google::protobuf::RepeatedPtrField<v1::CellFilter>;

  void Mark(const std::string& list, const Items& items, std::vector<bool>& keep, bool value) {
    for (int i = 0; i < items.size(); ++i) {
      const std::string path = list + "[" + std::to_string(i) + "]";
      if (names_.wrong_paths.contains(path) || !CheckItem(items[i], path)) {
        right_ = false;
        continue;
      }
      bool any = false;
      for (std::size_t cell = 0; cell < keep.size(); ++cell) {
        if (!Matches(items[i], playbook_.cells[cell])) continue;
        keep[cell] = value;
        any = true;
      }
      // With a part that is wrong in itself, its cells are missing.
      if (any || !names_.wrong_paths.empty()) continue;
      reporter_.Add(playbook_.Find(path),
                    {"LR307",
                     "no cell matches this item of `" + list + "`",
                     "",
                     {"a cell has only those axes that its stack, workload or disks use"},
                     {"leave the item out, or change what it says"}});
    }
  }

  bool CheckItem(const v1::CellFilter& item, const std::string& path) {
    bool right = true;
    if (item.stack().empty() && item.workload().empty() && item.with().empty()) {
      reporter_.Add(
          playbook_.Find(path),
          {"LR307", "this item says nothing", "", {}, {"give `stack`, `workload` or `with`"}});
      return false;
    }
    if (!item.stack().empty()) {
      right &= CheckName(playbook_.Find(path + ".stack"), "stack", item.stack(), names_.stacks,
                         reporter_);
    }
    if (!item.workload().empty()) {
      right &= CheckName(playbook_.Find(path + ".workload"), "workload", item.workload(),
                         names_.workloads, reporter_);
    }
    const std::map<std::string, std::string> with(item.with().begin(), item.with().end());
    for (const auto& [name, value] : with) right &= CheckValue(name, value, path + ".with." + name);
    return right;
  }

  bool CheckValue(const std::string& name, const std::string& value, const std::string& path) {
    std::vector<std::string> axis_names;
    for (const NamedAxis& axis : axes_.axes) {
      axis_names.push_back(axis.name);
      if (axis.name != name) continue;
      std::vector<std::string> values;
      for (const NamedValue& one : axis.values) values.push_back(one.text);
      return CheckName(playbook_.Find(path), "value of `" + name + "`:", value, values, reporter_);
    }
    return CheckName(playbook_.FindKey(path), "axis", name, axis_names, reporter_);
  }

  static bool Matches(const v1::CellFilter& item, const ExpandedCell& cell) {
    if (!item.stack().empty() && item.stack() != cell.stack.name()) return false;
    if (!item.workload().empty() && item.workload() != cell.workload.name()) return false;
    return std::ranges::all_of(item.with(), [&](const auto& wanted) {
      return std::ranges::any_of(cell.parameters, [&](const auto& parameter) {
        return parameter.first == wanted.first && parameter.second == wanted.second;
      });
    });
  }

  LoadedPlaybook& playbook_;
  const GivenNames& names_;
  const Names& axes_;
  Reporter& reporter_;
  bool right_ = true;
};

}  // namespace

void ApplyFilters(LoadedPlaybook& playbook, const GivenNames& names, const Names& axes,
                  Reporter& reporter) {
  FilterRun(playbook, names, axes, reporter).Run();
}

}  // namespace labrack::plan
