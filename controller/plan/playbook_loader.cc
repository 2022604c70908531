#include "controller/plan/playbook_loader.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "controller/plan/checks.h"
#include "controller/plan/digest.h"
#include "controller/plan/expansion.h"
#include "controller/plan/filters.h"
#include "controller/plan/gates.h"
#include "controller/plan/name_checks.h"
#include "controller/plan/overrides.h"
#include "controller/plan/reporter.h"
#include "controller/plan/stack_facts.h"
#include "proto/fields/fields.h"

namespace labrack::plan {
namespace {

using config::Document;
using config::Node;
using config::Problem;
using config::Problems;

using Mark = std::pair<std::size_t, std::size_t>;  // where something begins
Mark MarkOf(const config::Position& position) { return {position.line, position.column}; }

void CollectMarks(const Node& node, std::set<Mark>& marks) {
  marks.insert(MarkOf(node.span.begin));
  for (const Node& item : node.items) CollectMarks(item, marks);
  for (const Node::Entry& entry : node.entries) {
    marks.insert(MarkOf(entry.key_span.begin));
    CollectMarks(entry.value, marks);
  }
}

// A stack, a workload or the disks: bound once for each combination of the axes that it uses.
template <typename Message>
struct Part {
  AxisSet axes;
  std::map<Combination, Message> bound;
  const Message& Of(const Combination& combination) const {
    return bound.at(combination.Restricted(axes));
  }
};

// One playbook, being loaded. Run() is called once.
class Loader {
 public:
  Loader(const v1::PlaybookSource& source, const RefusedFiles& refused)
      : source_(source), refused_(refused) {}

  std::expected<LoadedPlaybook, Problems> Run() {
    Problems found;
    config::ReadYaml(source_.file(), source_.text(), {}, document_, found);
    for (const Problem& problem : found.list()) reporter_.Add(problem);
    if (!document_.checkable) return std::unexpected(reporter_.Take());
    found = {};
    overrides_.Apply(source_, document_, found);
    for (const Problem& problem : found.list()) reporter_.Add(problem);
    names_ = Names::Read(document_.root);
    NameChecks(document_, names_, overrides_, reporter_, muted_).Run();

    loaded_.file = source_.file();
    loaded_.text = source_.text();
    loaded_.sha256 = DigestOf(source_);
    BindWhole();
    if (document_.root.kind == Node::Kind::kMap) {
      FindGivenNames();
      BindParts();
      MakeCells();
      CheckAll();
    }
    if (!reporter_.problems().empty()) return std::unexpected(reporter_.Take());
    return std::move(loaded_);
  }

 private:
  // With the first value of every axis.
  void BindWhole() {
    const Assignment assignment = matrix_.AssignmentOf({});
    fields::Places places;
    Problems problems;
    fields::Bind(document_, SubstituteParts(document_.root, assignment), loaded_.playbook, places,
                 problems);
    for (const auto& [path, span] : places) {
      loaded_.places[path] = overrides_.PlaceOf(document_, span);
    }
    AddBound(problems, assignment);
    for (v1::Workload& workload : *loaded_.playbook.mutable_workloads()) AttachJob(workload);
  }

  // Names are put into stacks, workloads and disks only.
  static Node SubstituteParts(const Node& root, const Assignment& assignment) {
    Node copy = root;
    for (Node::Entry& entry : copy.entries) {
      if (entry.key == "stacks" || entry.key == "workloads" || entry.key == "disks") {
        entry.value = Substitute(entry.value, assignment);
      }
    }
    return copy;
  }

  // Takes over what Bind found, less what has been said before, with the values of names beside it.
  void AddBound(const Problems& problems, const Assignment& assignment) {
    for (Problem problem : problems.list()) {
      const Mark mark = MarkOf(problem.span.begin);
      if (muted_.contains(mark)) continue;
      wrong_marks_.insert(mark);
      if (!NoteValues(problem, assignment)) continue;
      const Place place = overrides_.PlaceOf(document_, problem.span);
      problem.file = place.file;
      problem.span = place.span;
      reporter_.Add(std::move(problem));
    }
  }

  // Says beside a problem what the names at its place stand for. False when that is a mistake that
  // NameChecks has reported already.
  bool NoteValues(Problem& problem, const Assignment& assignment) {
    const auto names = NamesByPlace().find(MarkOf(problem.span.begin));
    if (names == NamesByPlace().end()) return true;
    for (const std::string& name : names->second) {
      const auto value = assignment.find(name);
      if (value == assignment.end()) continue;
      if (value->second.find("${") != std::string::npos) return false;
      problem.notes.push_back("`${" + name + "}` is `" + value->second + "` here");
    }
    return true;
  }

  // Scalars that hold names.
  const std::map<Mark, std::set<std::string>>& NamesByPlace() {
    if (names_by_place_.empty()) {
      for (const NameUse& use : UsesIn(document_.root)) {
        names_by_place_[MarkOf(use.scalar.begin)].insert(use.name);
      }
    }
    return names_by_place_;
  }

  // A playbook of somebody else's must not send files of its reader's to wherever the run goes.
  bool RefuseOutside(const std::string& path, const std::string& file) {
    const auto refused = refused_.find(file);
    if (refused == refused_.end() && !LeadsOut(file)) return false;
    reporter_.Add(loaded_.Find(path),
                  {"LR331",
                   "the job file `" + file + "` is outside of the playbook's directory",
                   "",
                   {refused == refused_.end() ? "job files travel with the playbook, so only what "
                                                "is below its directory is taken"
                                              : refused->second},
                   {"put the file below that directory, or give the job's text as `job`"}});
    return true;
  }

  // fio runs the text of the job; where that comes from a file, it was sent along.
  void AttachJob(v1::Workload& workload) {
    if (!workload.has_fio() || workload.fio().job_file().empty()) return;
    const std::string path = "workloads." + workload.name() + ".fio.job_file";
    const std::string& file = workload.fio().job_file();
    if (!workload.fio().job().empty()) {
      reporter_.Add(loaded_.FindKey(path), {"LR330",
                                            "a fio workload has one job, not two",
                                            "",
                                            {},
                                            {"keep either `job` or `job_file`"}});
      return;
    }
    if (RefuseOutside(path, file)) return;
    const auto text = source_.attachments().find(file);
    if (text == source_.attachments().end()) {
      reporter_.Add(loaded_.Find(path), {"LR331",
                                         "the job file `" + file + "` cannot be read",
                                         "",
                                         {"paths are relative to the playbook's directory"},
                                         {"put the file there, or give the job's text as `job`"}});
    } else if (text->second.empty()) {
      reporter_.Add(loaded_.Find(path), {"LR332",
                                         "the job file `" + file + "` is empty",
                                         "",
                                         {},
                                         {"write at least one section, as `[randread]`"}});
    } else {
      workload.mutable_fio()->set_job(text->second);
    }
  }

  void FindGivenNames() {
    std::set<Mark> wrong = muted_;
    wrong.insert(wrong_marks_.begin(), wrong_marks_.end());
    const auto check = [&](const std::string& path, const Node& node, const config::Span* key) {
      std::set<Mark> marks;
      CollectMarks(node, marks);
      if (key != nullptr) marks.insert(MarkOf(key->begin));
      if (std::ranges::any_of(marks, [&](const Mark& mark) { return wrong.contains(mark); })) {
        given_.wrong_paths.insert(path);
      }
    };
    for (const char* section : {"stacks", "workloads"}) {
      const Node* node = document_.root.Find(section);
      if (node == nullptr) continue;
      for (const Node::Entry& entry : node->entries) {
        (section == std::string_view("stacks") ? given_.stacks : given_.workloads)
            .push_back(entry.key);
        check(section + ("." + entry.key), entry.value, &entry.key_span);
      }
    }
    for (const char* section : {"gates", "include", "exclude"}) {
      const Node* node = document_.root.Find(section);
      if (node == nullptr) continue;
      for (std::size_t i = 0; i < node->items.size(); ++i) {
        check(std::string(section) + "[" + std::to_string(i) + "]", node->items[i], nullptr);
      }
    }
    if (const Node* disks = document_.root.Find("disks")) check("disks", *disks, nullptr);
  }

  void BindParts() {
    if (const Node* disks = document_.root.Find("disks")) disks_.axes = matrix_.UsedBy(*disks);
    stacks_ =
        std::vector<Part<v1::Stack>>(static_cast<std::size_t>(loaded_.playbook.stacks_size()));
    workloads_ = std::vector<Part<v1::Workload>>(
        static_cast<std::size_t>(loaded_.playbook.workloads_size()));
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      stacks_[i].axes = AxesOf("stacks", loaded_.playbook.stacks(static_cast<int>(i)).name());
    }
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
      workloads_[i].axes =
          AxesOf("workloads", loaded_.playbook.workloads(static_cast<int>(i)).name());
    }
    if (!CheckCellCount()) return;
    BindEach(disks_, "disks", "", [](const v1::Playbook& bound) { return bound.disks(); });
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
      BindEach(stacks_[i], "stacks", loaded_.playbook.stacks(static_cast<int>(i)).name(),
               [](const v1::Playbook& bound) {
                 return bound.stacks().empty() ? v1::Stack() : bound.stacks(0);
               });
    }
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
      BindEach(workloads_[i], "workloads", loaded_.playbook.workloads(static_cast<int>(i)).name(),
               [this](const v1::Playbook& bound) {
                 v1::Workload workload =
                     bound.workloads().empty() ? v1::Workload() : bound.workloads(0);
                 AttachJob(workload);
                 return workload;
               });
    }
  }

  AxisSet AxesOf(const char* section, const std::string& name) const {
    const Node* node = document_.root.Find(section);
    const Node* entry = node == nullptr ? nullptr : node->Find(name);
    return entry == nullptr ? AxisSet() : matrix_.UsedBy(*entry);
  }

  AxisSet StackSideAxes(std::size_t stack) const {
    AxisSet axes = stacks_[stack].axes;
    if (UsesDisks(loaded_.playbook.stacks(static_cast<int>(stack)))) {
      axes.insert(disks_.axes.begin(), disks_.axes.end());
    }
    return axes;
  }

  bool CheckCellCount() {
    std::size_t count = 0;
    for (const Part<v1::Workload>& workload : workloads_) {
      for (std::size_t stack = 0; stack < stacks_.size(); ++stack) {
        AxisSet axes = StackSideAxes(stack);
        axes.insert(workload.axes.begin(), workload.axes.end());
        const std::size_t more = matrix_.CountOf(axes);
        count = more > std::numeric_limits<std::size_t>::max() - count
                    ? std::numeric_limits<std::size_t>::max()
                    : count + more;
      }
    }
    if (count <= kCellsMax) return true;
    too_many_ = true;
    const bool by_matrix = !names_.axes.empty();
    reporter_.Add(
        loaded_.FindKey(by_matrix ? "matrix" : "workloads"),
        {"LR306",
         "the playbook has more than " + std::to_string(kCellsMax) + " cells",
         "",
         {Count(stacks_.size(), "stack") + " and " + Count(workloads_.size(), "workload") +
          ", each with every combination of the axes that it uses"},
         {"list fewer values in `matrix`, or split the playbook"}});
    return false;
  }

  // Binds one part alone, for every combination of its axes. It stands in a playbook of its own, so
  // that what Bind says about it is the same as in the whole.
  template <typename Message, typename Take>
  void BindEach(Part<Message>& part, const std::string& section, const std::string& name,
                const Take& take) {
    const std::string path = name.empty() ? section : section + "." + name;
    for (const Combination& combination : matrix_.All(part.axes)) {
      const Assignment assignment = matrix_.AssignmentOf(combination);
      v1::Playbook bound;
      fields::Places ignored;
      Problems problems;
      fields::Bind(document_, Alone(section, name, assignment), bound, ignored, problems);
      // Complaints about what was taken out do not concern the part.
      Problems of_part;
      for (const Problem& problem : problems.list()) {
        if (InPart(problem, section, name)) of_part.Add(problem);
      }
      if (!of_part.empty()) given_.wrong_paths.insert(path);
      AddBound(of_part, assignment);
      part.bound.emplace(combination, take(bound));
    }
  }

  Node Alone(const std::string& section, const std::string& name,
             const Assignment& assignment) const {
    Node root;
    root.kind = Node::Kind::kMap;
    root.span = document_.root.span;
    const Node::Entry* entry = document_.root.FindEntry(section);
    if (entry == nullptr) return root;
    Node::Entry copy = *entry;
    if (!name.empty()) {
      copy.value.entries.clear();
      copy.value.entries.push_back(*entry->value.FindEntry(name));
    }
    copy.value = Substitute(copy.value, assignment);
    root.entries.push_back(std::move(copy));
    return root;
  }

  bool InPart(const Problem& problem, const std::string& section, const std::string& name) const {
    const Node* value = document_.root.Find(section);
    if (value == nullptr) return false;
    std::set<Mark> marks;
    if (!name.empty()) {
      const Node::Entry* entry = value->FindEntry(name);
      marks.insert(MarkOf(entry->key_span.begin));
      value = &entry->value;
    }
    CollectMarks(*value, marks);
    return marks.contains(MarkOf(problem.span.begin));
  }

  void MakeCells() {
    if (too_many_) return;
    for (std::size_t w = 0; w < workloads_.size(); ++w) {
      const Part<v1::Workload>& workload = workloads_[w];
      if (IsWrong("workloads.", loaded_.playbook.workloads(static_cast<int>(w)).name())) continue;
      for (const Combination& conditions : matrix_.All(workload.axes)) {
        for (std::size_t s = 0; s < stacks_.size(); ++s) {
          if (IsWrong("stacks.", loaded_.playbook.stacks(static_cast<int>(s)).name())) continue;
          AxisSet further = StackSideAxes(s);
          for (std::size_t axis : workload.axes) further.erase(axis);
          for (const Combination& rest : matrix_.All(further)) {
            AddCell(workload, stacks_[s], conditions, conditions.With(rest));
          }
        }
      }
    }
  }

  bool IsWrong(const char* section, const std::string& name) const {
    return given_.wrong_paths.contains(section + name);
  }

  void AddCell(const Part<v1::Workload>& workload, const Part<v1::Stack>& stack,
               const Combination& conditions, const Combination& all) {
    ExpandedCell& cell = loaded_.cells.emplace_back();
    cell.workload = workload.Of(conditions);
    cell.stack = stack.Of(all);
    // Without the axes of the disks only a directory comes here, which uses none.
    const auto disks = disks_.bound.find(all.Restricted(disks_.axes));
    cell.disks = disks == disks_.bound.end() ? loaded_.playbook.disks() : disks->second;
    cell.parameters = matrix_.Parameters(all);
    cell.conditions = matrix_.Text(conditions);
  }

  void CheckAll() {
    CheckHosts(loaded_, reporter_);
    CheckBase(loaded_, given_, reporter_);
    if (!too_many_) {
      ApplyFilters(loaded_, given_, names_, reporter_);
      for (const ExpandedCell& cell : loaded_.cells) {
        CheckWorkload(loaded_, cell, reporter_);
        if (!given_.wrong_paths.contains("disks")) CheckStack(loaded_, cell, reporter_);
      }
    }
    CheckGates(loaded_, given_, reporter_);
  }

  const v1::PlaybookSource& source_;
  const RefusedFiles& refused_;
  Document document_;
  Overrides overrides_;
  Names names_;
  Matrix matrix_{names_};
  Reporter reporter_;
  Muted muted_;
  std::set<Mark> wrong_marks_;
  std::map<Mark, std::set<std::string>> names_by_place_;
  GivenNames given_;
  Part<v1::Disks> disks_;
  std::vector<Part<v1::Stack>> stacks_;
  std::vector<Part<v1::Workload>> workloads_;
  bool too_many_ = false;
  LoadedPlaybook loaded_;
};

// The values of `job_file` of one workload, with every combination of the axes in it.
void AddJobFiles(const Node& workload, const Matrix& matrix, std::vector<std::string>& paths) {
  const Node* fio = workload.kind == Node::Kind::kMap ? workload.Find("fio") : nullptr;
  const Node* file =
      fio != nullptr && fio->kind == Node::Kind::kMap ? fio->Find("job_file") : nullptr;
  if (file == nullptr || file->kind != Node::Kind::kScalar) return;
  const AxisSet axes = matrix.UsedBy(*file);
  if (matrix.CountOf(axes) > kCellsMax) return;
  for (const Combination& combination : matrix.All(axes)) {
    std::string path = Substitute(*file, matrix.AssignmentOf(combination)).text;
    if (!path.empty() && std::ranges::find(paths, path) == paths.end()) {
      paths.push_back(std::move(path));
    }
  }
}

}  // namespace

std::expected<LoadedPlaybook, Problems> LoadPlaybook(const v1::PlaybookSource& source,
                                                     const RefusedFiles& refused) {
  return Loader(source, refused).Run();
}

bool LeadsOut(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return normal.is_absolute() || (normal.begin() != normal.end() && *normal.begin() == "..");
}

std::vector<std::string> AttachmentPaths(const v1::PlaybookSource& source) {
  std::vector<std::string> paths;
  Document document;
  Problems ignored;  // LoadPlaybook reports them
  config::ReadYaml(source.file(), source.text(), {}, document, ignored);
  if (!document.checkable) return paths;
  Overrides().Apply(source, document, ignored);
  const Names names = Names::Read(document.root);
  const Node* workloads =
      document.root.kind == Node::Kind::kMap ? document.root.Find("workloads") : nullptr;
  if (workloads == nullptr) return paths;
  for (const Node::Entry& entry : workloads->entries) {
    AddJobFiles(entry.value, Matrix(names), paths);
  }
  return paths;
}

std::vector<std::string> AttachmentPaths(std::string_view text) {
  v1::PlaybookSource source;
  source.set_text(std::string(text));
  return AttachmentPaths(source);
}

}  // namespace labrack::plan
