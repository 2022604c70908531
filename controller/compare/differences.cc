// Sentences on what differs between two stacks.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "controller/compare/reasons.h"
#include "storage/base/units.h"

namespace labrack::compare {
namespace {

// Below this two figures are the same for a reader who asks why.
constexpr double kTellingShare = 0.05;

std::string Time(double nanoseconds) {
  return FormatDuration(Nanoseconds(std::llround(nanoseconds)));
}

// "1", "2.0", "0.03": counts per operation.
std::string Number(double value) {
  if (value == 0) return "none";
  return value < 0.1 ? fmt::format("{:.2f}", value) : fmt::format("{:.1f}", value);
}

bool Differ(double a, double b) {
  return std::abs(a - b) > kTellingShare * std::max(std::abs(a), std::abs(b));
}

// "old data and old parity"
std::string PurposesAt(const v1::StackReasons& stack, std::uint32_t depth, bool before) {
  std::vector<std::string> names;
  for (const v1::IoStage& stage : stack.stages()) {
    const double here = before ? stage.reads() + stage.writes() - stage.behind() : stage.behind();
    if (stage.depth() == depth && here >= kTellingShare) names.push_back(stage.purpose());
  }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

// "old data and old parity, then prewrite": what stands before the acknowledgement.
std::string Chain(const v1::StackReasons& stack) {
  std::uint32_t deepest = 0;
  for (const v1::IoStage& stage : stack.stages()) deepest = std::max(deepest, stage.depth());
  std::string text;
  for (std::uint32_t depth = 1; depth <= deepest; ++depth) {
    const std::string here = PurposesAt(stack, depth, /*before=*/true);
    if (!here.empty()) text += (text.empty() ? "" : ", then ") + here;
  }
  return text;
}

double DiskTime(const v1::StackReasons& stack) {
  double reads = 0;
  double writes = 0;
  for (const v1::IoStage& stage : stack.stages()) {
    reads += stage.reads();
    writes += stage.writes();
  }
  if (reads + writes == 0) return 0;
  return (reads * stack.disk_read_ns() + writes * stack.disk_write_ns()) / (reads + writes);
}

// What makes an operation take long comes before what else it costs.
enum class Kind { kTime, kCost };

// A sentence and how large the difference is that it tells.
struct Told {
  Kind kind = Kind::kTime;
  double weight = 0;
  std::size_t order = 0;  // where the weights are equal
  std::string text;
};

class Pair {
 public:
  Pair(const v1::StackReasons& base, const v1::StackReasons& other) : base_(base), other_(other) {}

  std::vector<std::string> Tell() {
    if (base_.latency_ns() <= 0 || other_.latency_ns() <= 0) return {};
    Chains();
    Width();
    Ios();
    DiskTimes();
    Waits();
    Flushes();
    Amplification();
    Cpu();
    std::ranges::sort(told_, [](const Told& a, const Told& b) {
      return std::tuple(a.kind, -a.weight, a.order) < std::tuple(b.kind, -b.weight, b.order);
    });
    std::vector<std::string> sentences = {Headline()};
    for (Told& told : told_) sentences.push_back(std::move(told.text));
    return sentences;
  }

 private:
  std::string Headline() const {
    const double ratio = other_.latency_ns() / base_.latency_ns();
    const std::string times =
        fmt::format("({} against {})", Time(other_.latency_ns()), Time(base_.latency_ns()));
    if (!Differ(other_.latency_ns(), base_.latency_ns())) {
      return fmt::format("An operation takes {} as long as {} {}.", other_.stack(), base_.stack(),
                         times);
    }
    const bool slower = ratio > 1;
    std::string text = fmt::format("An operation takes {} {:.2f} times as long as {} {}.",
                                   other_.stack(), ratio, base_.stack(), times);
    if (!told_.empty()) return text;
    text += base_.has_ios() && other_.has_ios()
                ? fmt::format(" Its I/Os are alike, so it is not they that make it {}.",
                              slower ? "slower" : "faster")
                : " Nothing is known of the I/Os below.";
    return text;
  }

  // By how much more, on a scale on which twice and half are equal.
  void Say(Kind kind, double base, double other, std::string text) {
    const double weight = base > 0 && other > 0 ? std::abs(std::log(other / base))
                                                : std::numeric_limits<double>::max();
    told_.push_back(
        {.kind = kind, .weight = weight, .order = told_.size(), .text = std::move(text)});
  }

  void Chains() {
    if (!base_.has_chain() || !other_.has_chain() || !Differ(base_.chain(), other_.chain())) return;
    Say(Kind::kTime, base_.chain(), other_.chain(),
        fmt::format("{} waits for {} I/Os one after the other before it acknowledges ({}), {} for "
                    "{} ({}).",
                    other_.stack(), Number(other_.chain()), Chain(other_), base_.stack(),
                    Number(base_.chain()), Chain(base_)));
  }

  // I/Os that go side by side: the slowest decides.
  void Width() {
    if (!base_.has_chain() || !other_.has_chain() || base_.chain() <= 0 || other_.chain() <= 0)
      return;
    const double base = base_.ios_before() / base_.chain();
    const double other = other_.ios_before() / other_.chain();
    if (!Differ(base, other)) return;
    Say(Kind::kTime, base, other,
        fmt::format("{} does {} I/Os side by side, of which the slowest decides, {} does {}.",
                    other_.stack(), Number(other), base_.stack(), Number(base)));
  }

  void Ios() {
    if (!base_.has_ios() || !other_.has_ios() || !Differ(base_.ios(), other_.ios())) return;
    std::string text =
        fmt::format("{} costs {} I/Os at the disks per operation, {} costs {}", other_.stack(),
                    Number(other_.ios()), base_.stack(), Number(base_.ios()));
    if (other_.has_ios_behind() && other_.ios_behind() >= kTellingShare) {
      text += fmt::format("; {} of them come after the acknowledgement ({})",
                          Number(other_.ios_behind()), Behind());
    }
    Say(Kind::kCost, base_.ios(), other_.ios(), text + ".");
  }

  std::string Behind() const {
    std::string text;
    for (std::uint32_t depth = 1; depth <= 9; ++depth) {
      const std::string here = PurposesAt(other_, depth, /*before=*/false);
      if (!here.empty()) text += (text.empty() ? "" : ", then ") + here;
    }
    return text;
  }

  void DiskTimes() {
    const double base = DiskTime(base_);
    const double other = DiskTime(other_);
    if (base <= 0 || other <= 0 || !Differ(base, other)) return;
    Say(Kind::kTime, base, other,
        fmt::format("An I/O takes {} at the disks of {}, {} at those of {}{}.", Time(other),
                    other_.stack(), Time(base), base_.stack(), Mechanics()));
  }

  // Of modelled disks: where most of the difference comes from.
  std::string Mechanics() const {
    if (!base_.has_modelled() || !other_.has_modelled()) return "";
    const v1::ModelledShares& a = base_.modelled();
    const v1::ModelledShares& b = other_.modelled();
    const struct {
      const char* what;
      double base;
      double other;
    } parts[] = {{"command", a.command_ns(), b.command_ns()},
                 {"queue", a.queue_ns(), b.queue_ns()},
                 {"seek", a.seek_ns(), b.seek_ns()},
                 {"rotation", a.rotation_ns(), b.rotation_ns()},
                 {"transfer", a.transfer_ns(), b.transfer_ns()},
                 {"bus", a.bus_ns(), b.bus_ns()}};
    const auto& most = *std::ranges::max_element(
        parts, {}, [](const auto& part) { return std::abs(part.other - part.base); });
    return fmt::format("; most of that is {} ({} against {})", most.what, Time(most.other),
                       Time(most.base));
  }

  void Waits() {
    const double base = base_.queue_wait_ns();
    const double other = other_.queue_wait_ns();
    const double matters = kTellingShare * std::max(base_.latency_ns(), other_.latency_ns());
    if (std::abs(other - base) < matters || !Differ(base, other)) return;
    Say(Kind::kTime, base, other,
        fmt::format("An I/O of {} waits {} for its turn at a disk, one of {} {}.", other_.stack(),
                    Time(other), base_.stack(), Time(base)));
  }

  void Flushes() {
    if (base_.has_flushes() && other_.has_flushes() &&
        std::abs(base_.flushes() - other_.flushes()) >= kTellingShare &&
        Differ(base_.flushes(), other_.flushes())) {
      Say(Kind::kTime, base_.flushes(), other_.flushes(),
          fmt::format("{} flushes disks {} times per operation, {} {}.", other_.stack(),
                      Number(other_.flushes()), base_.stack(), Number(base_.flushes())));
    }
  }

  void Amplification() {
    if (base_.has_write_amplification() && other_.has_write_amplification() &&
        Differ(base_.write_amplification(), other_.write_amplification())) {
      Say(Kind::kCost, base_.write_amplification(), other_.write_amplification(),
          fmt::format("{} writes {:.2f} bytes to its disks for each of the workload, {} {:.2f}.",
                      other_.stack(), other_.write_amplification(), base_.stack(),
                      base_.write_amplification()));
    }
    if (base_.has_read_amplification() && other_.has_read_amplification() &&
        Differ(base_.read_amplification(), other_.read_amplification())) {
      Say(Kind::kCost, base_.read_amplification(), other_.read_amplification(),
          fmt::format("{} reads {:.2f} bytes from its disks for each of the workload, {} {:.2f}.",
                      other_.stack(), other_.read_amplification(), base_.stack(),
                      base_.read_amplification()));
    }
  }

  void Cpu() {
    if (!base_.has_cpu_ns() || !other_.has_cpu_ns()) return;
    const double matters = kTellingShare * std::max(base_.latency_ns(), other_.latency_ns());
    if (std::abs(base_.cpu_ns() - other_.cpu_ns()) < matters) return;
    if (!Differ(base_.cpu_ns(), other_.cpu_ns())) return;
    Say(Kind::kTime, base_.cpu_ns(), other_.cpu_ns(),
        fmt::format("{} takes {} of processor time per operation, {} {}.", other_.stack(),
                    Time(other_.cpu_ns()), base_.stack(), Time(base_.cpu_ns())));
  }

  const v1::StackReasons& base_;
  const v1::StackReasons& other_;
  std::vector<Told> told_;
};

}  // namespace

std::vector<std::string> Differences(const v1::StackReasons& base, const v1::StackReasons& other) {
  return Pair(base, other).Tell();
}

}  // namespace labrack::compare
