#include "controller/compare/match.h"

#include <set>

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>

#include "proto/convert/names.h"
#include "proto/fields/fields.h"

namespace labrack::compare {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::util::MessageDifferencer;

constexpr std::size_t kValueShownMax = 40;  // a fio job may fill pages

std::string Shown(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated() ? reflection.FieldSize(message, &field) == 0
                          : field.has_presence() && !reflection.HasField(message, &field)) {
    return "(none)";
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated()) return "(set)";
  std::string text = fields::FormatField(message, field);
  if (text.size() > kValueShownMax) return "(a long text)";
  return text.empty() ? "(empty)" : text;
}

bool SameField(const Message& a, const Message& b, const FieldDescriptor& field) {
  MessageDifferencer differencer;
  return differencer.CompareWithFields(a, b, {&field}, {&field});
}

// The first field that differs, in the order of declaration.
std::string FirstDifference(const Message& base, const Message& test, const std::string& path) {
  for (int i = 0; i < base.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *base.GetDescriptor()->field(i);
    if (SameField(base, test, field)) continue;
    const std::string at = path.empty() ? field.name() : path + "." + field.name();
    const bool single_message =
        field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated();
    if (single_message && base.GetReflection()->HasField(base, &field) &&
        test.GetReflection()->HasField(test, &field)) {
      return FirstDifference(base.GetReflection()->GetMessage(base, &field),
                             test.GetReflection()->GetMessage(test, &field), at);
    }
    return fmt::format("{}: {}, {}", at, Shown(base, field), Shown(test, field));
  }
  return "";
}

void AddLine(std::string text, v1::Report& report) {
  report.add_environment()->set_text(std::move(text));
}

void Warn(const char* code, std::string message, std::string cure, v1::Report& report) {
  v1::Warning& warning = *report.add_warnings();
  warning.set_code(code);
  warning.set_message(std::move(message));
  warning.set_cure(std::move(cure));
}

void AddStackDifferences(const RunView& base, const RunView& test, v1::Report& report) {
  std::set<std::string> said;
  for (const CellView& cell : test.cells) {
    const CellView* partner = base.Find(cell.stack(), cell);
    if (partner == nullptr || !DifferenceOfWork(*partner->cell, *cell.cell).empty()) continue;
    const std::string difference = DifferenceOfStack(*partner->cell, *cell.cell);
    if (difference.empty()) continue;
    const std::string line =
        fmt::format("stack {} differs between the runs (base, test): {}", cell.stack(), difference);
    if (said.insert(line).second) AddLine(line, report);
  }
  if (said.empty()) return;
  Warn("LW210", "stacks of one name differ between the runs (see environment)",
       "as it should be when that is what is tested; otherwise run both with one playbook", report);
}

void AddPlaybookDifferences(const v1::Plan& base, const v1::Plan& test, v1::Report& report) {
  if (base.playbook_sha256() != test.playbook_sha256()) {
    AddLine(fmt::format("the playbook differs between the runs: sha256 base {:.12}, test {:.12}",
                        base.playbook_sha256(), test.playbook_sha256()),
            report);
  }
  const v1::Playbook& was = base.playbook();
  const v1::Playbook& is = test.playbook();
  if (was.margin() != is.margin() || was.latency_margin() != is.latency_margin()) {
    AddLine(
        fmt::format("the margins differ between the runs: base {:g} % and {:g} % (latency), test "
                    "{:g} % and {:g} %; those of the test run are used",
                    was.margin() * 100, was.latency_margin() * 100, is.margin() * 100,
                    is.latency_margin() * 100),
        report);
  }
}

}  // namespace

std::string DifferenceOfWork(const v1::PlannedCell& base, const v1::PlannedCell& test) {
  v1::Workload was = base.workload();
  v1::Workload is = test.workload();
  // The text counts, not where it came from.
  for (v1::Workload* workload : {&was, &is}) {
    if (workload->has_fio() && !workload->fio().job().empty()) {
      workload->mutable_fio()->clear_job_file();
    }
  }
  const std::string workload = FirstDifference(was, is, "workload");
  return workload.empty() ? FirstDifference(base.disks(), test.disks(), "disks") : workload;
}

std::string DifferenceOfStack(const v1::PlannedCell& base, const v1::PlannedCell& test) {
  v1::Stack was = base.stack();
  v1::Stack is = test.stack();
  was.clear_summary();
  is.clear_summary();
  // What would have been done on a host that cannot build it; stand-ins have a warning of their
  // own.
  was.clear_if_unsupported();
  is.clear_if_unsupported();
  return FirstDifference(was, is, "");
}

void AddRunWarnings(const RunView& base, const RunView& test, v1::Report& report) {
  Warn("LW209",
       "the two runs were not interleaved: time of day, fill level and state of the hosts differ",
       "for a fair comparison put both stacks into one playbook", report);
  AddStackDifferences(base, test, report);
  AddPlaybookDifferences(base.record->plan(), test.record->plan(), report);
  if (report.rows().empty()) {
    Warn("LW211", "nothing was the same in both runs, so nothing was compared",
         "compare runs of one playbook and one fleet", report);
  }
}

}  // namespace labrack::compare
