#include "controller/report/why.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "controller/report/text_table.h"
#include "storage/base/units.h"

namespace labrack::report {
namespace {

using Stacks = std::vector<const v1::StackReasons*>;

constexpr const char* kUnknown = "-";

std::string Time(double nanoseconds) {
  return FormatDuration(Nanoseconds(std::llround(nanoseconds)));
}

std::string Number(double value) {
  return value > 0 && value < 0.095 ? fmt::format("{:.3f}", value) : fmt::format("{:.2f}", value);
}

std::string Bytes64(double bytes) {
  return FormatBytes(Bytes(static_cast<std::uint64_t>(std::llround(bytes))));
}

class ReasonTable {
 public:
  explicit ReasonTable(Stacks stacks) : stacks_(std::move(stacks)), table_(Columns()) {}

  std::string Text() {
    Row("trials", [](const auto& of) { return std::to_string(of.trials()); });
    Row("operations counted", [](const auto& of) { return std::to_string(of.operations()); });
    Row("bytes per operation", [](const auto& of) { return Bytes64(of.bytes_per_operation()); });
    Row("time per operation", [](const auto& of) { return Time(of.latency_ns()); });
    Ios();
    Stages();
    Disks();
    Models();
    Row("processor time per operation",
        [](const auto& of) { return of.has_cpu_ns() ? Time(of.cpu_ns()) : kUnknown; });
    return table_.Format(kColumnsMax);
  }

 private:
  using Value = std::function<std::string(const v1::StackReasons& of)>;

  std::vector<TextTable::Column> Columns() const {
    std::vector<TextTable::Column> columns = {{.title = ""}};
    for (const v1::StackReasons* of : stacks_) {
      columns.push_back({.title = Printable(of->stack()), .align = TextTable::Align::kRight});
    }
    return columns;
  }

  void Row(const std::string& title, const Value& value) {
    std::vector<std::string> cells = {"  " + title};
    bool any = false;
    for (const v1::StackReasons* of : stacks_) {
      cells.push_back(of->operations() == 0 ? kUnknown : value(*of));
      any |= cells.back() != kUnknown;
    }
    if (any) table_.AddRow(std::move(cells));
  }

  void Ios() {
    Row("I/Os per operation",
        [](const auto& of) { return of.has_ios() ? Number(of.ios()) : kUnknown; });
    Row("  before the acknowledgement",
        [](const auto& of) { return of.has_ios_before() ? Number(of.ios_before()) : kUnknown; });
    Row("  behind it",
        [](const auto& of) { return of.has_ios_behind() ? Number(of.ios_behind()) : kUnknown; });
    Row("one after the other, before it",
        [](const auto& of) { return of.has_chain() ? Number(of.chain()) : kUnknown; });
  }

  // A row a purpose and depth that any stack has.
  void Stages() {
    std::set<std::pair<std::uint32_t, std::string>> keys;
    for (const v1::StackReasons* of : stacks_) {
      for (const v1::IoStage& stage : of->stages()) keys.emplace(stage.depth(), stage.purpose());
    }
    for (const auto& [depth, purpose] : keys) {
      Row(fmt::format("  stage {}: {}", depth, purpose), [&](const v1::StackReasons& of) {
        for (const v1::IoStage& stage : of.stages()) {
          if (stage.depth() == depth && stage.purpose() == purpose) return StageText(stage);
        }
        return std::string(kUnknown);
      });
    }
  }

  // "1.00 r", "1.00 w behind".
  static std::string StageText(const v1::IoStage& stage) {
    std::string text;
    if (stage.reads() > 0) text = Number(stage.reads()) + " r";
    if (stage.writes() > 0) text += (text.empty() ? "" : " ") + Number(stage.writes()) + " w";
    const double all = stage.reads() + stage.writes();
    if (stage.behind() > all / 2) text += " behind";
    return text;
  }

  void Disks() {
    Row("bytes written for one of the workload", [](const auto& of) {
      return of.has_write_amplification() ? Number(of.write_amplification()) : kUnknown;
    });
    Row("bytes read for one of the workload", [](const auto& of) {
      return of.has_read_amplification() ? Number(of.read_amplification()) : kUnknown;
    });
    Row("flushes per operation",
        [](const auto& of) { return of.has_flushes() ? Number(of.flushes()) : kUnknown; });
    Row("durable writes per operation", [](const auto& of) {
      return of.has_durable_writes() ? Number(of.durable_writes()) : kUnknown;
    });
    Row("wait in the disk's queue", [](const auto& of) {
      return of.has_queue_wait_ns() ? Time(of.queue_wait_ns()) : kUnknown;
    });
    Row("read at a disk, with that",
        [](const auto& of) { return of.has_disk_read_ns() ? Time(of.disk_read_ns()) : kUnknown; });
    Row("write at a disk, with that", [](const auto& of) {
      return of.has_disk_write_ns() ? Time(of.disk_write_ns()) : kUnknown;
    });
    Row("flush of a disk", [](const auto& of) {
      return of.has_disk_flush_ns() ? Time(of.disk_flush_ns()) : kUnknown;
    });
  }

  void Models() {
    const std::pair<const char*, double (v1::ModelledShares::*)() const> parts[] = {
        {"command", &v1::ModelledShares::command_ns},
        {"other I/Os first", &v1::ModelledShares::queue_ns},
        {"seek", &v1::ModelledShares::seek_ns},
        {"rotation", &v1::ModelledShares::rotation_ns},
        {"transfer", &v1::ModelledShares::transfer_ns},
        {"bus", &v1::ModelledShares::bus_ns}};
    for (const auto& [name, part] : parts) {
      Row(fmt::format("  of an I/O: {}", name), [&](const v1::StackReasons& of) {
        return of.has_modelled() ? Time((of.modelled().*part)()) : std::string(kUnknown);
      });
    }
  }

  Stacks stacks_;
  TextTable table_;
};

// As many stacks as fit beside each other, the base in each part.
std::vector<Stacks> Parts(const v1::StepReasons& reasons) {
  constexpr std::size_t kTitleColumns = 40;
  constexpr std::size_t kValueColumns = 13;
  std::vector<Stacks> parts;
  std::size_t left = 0;
  const auto width = [&](const v1::StackReasons& of) {
    return std::max(ColumnsOf(of.stack()), kValueColumns) + 2;
  };
  for (const v1::StackReasons& of : reasons.stacks()) {
    if (parts.empty() || left < width(of)) {
      parts.emplace_back();
      left = kColumnsMax - kTitleColumns;
      if (parts.size() > 1) {
        parts.back().push_back(&reasons.stacks(0));
        left -= std::min(left, width(reasons.stacks(0)));
      }
    }
    parts.back().push_back(&of);
    left -= std::min(left, width(of));
  }
  return parts;
}

std::string Title(const v1::StepReasons& reasons) {
  return Printable(reasons.workload() +
                   (reasons.parameters().empty() ? "" : " " + reasons.parameters()));
}

}  // namespace

std::string FormatReasons(const v1::Report& report, const Style& style) {
  std::string text = Inked("why " + report.run().run_id(), Ink::kBold, style) + "  " +
                     Printable(report.run().playbook_name());
  if (!report.clock().empty() && report.clock() != "monotonic") {
    text += "   clock: " + Printable(report.clock());
  }
  text += "\n";
  if (report.reasons().empty()) return text + "no trial is valid, so there is nothing to explain\n";
  for (const v1::StepReasons& reasons : report.reasons()) {
    text += "\n" + Inked(Title(reasons), Ink::kBold, style) + "\n";
    for (const Stacks& part : Parts(reasons)) text += ReasonTable(part).Text();
    for (const std::string& sentence : reasons.sentences()) {
      text += Wrapped("- ", Printable(sentence), kColumnsMax);
    }
  }
  return text;
}

}  // namespace labrack::report
