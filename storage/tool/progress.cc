#include "storage/tool/progress.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "storage/base/units.h"

namespace labrack::tool {
namespace {

constexpr Nanoseconds kQuiet = std::chrono::seconds(2);
constexpr Nanoseconds kOnTerminal = std::chrono::milliseconds(200);
constexpr Nanoseconds kElsewhere = std::chrono::seconds(10);
constexpr std::size_t kBarColumns = 30;

Bytes Moved(const Disks& disks) {
  const block::DeviceStats::Sum sum = disks.Stats().Total();
  return sum.read + sum.written;
}

}  // namespace

void Progress::Say(Nanoseconds since, bool terminal) const {
  const Bytes moved = Moved(disks_);
  const double seconds = std::chrono::duration<double>(since).count();
  std::string text = what_;
  if (expected_ > Bytes(0)) {
    const double share =
        std::min(1.0, static_cast<double>(moved.count()) / static_cast<double>(expected_.count()));
    const auto filled = static_cast<std::size_t>(share * kBarColumns);
    text += fmt::format(" [{:<{}}] {:.0f} %", std::string(filled, '#'), kBarColumns, 100 * share);
  }
  const auto rate = static_cast<std::uint64_t>(static_cast<double>(moved.count()) / seconds);
  text += fmt::format("  {} moved, {}/s", FormatBytes(moved), FormatBytes(Bytes(rate)));
  text = terminal ? "\r" + text + "\x1b[K" : text + "\n";
  std::fputs(text.c_str(), stderr);
}

runtime::Task<void> Progress::Tell() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const TimePoint begin = disks_.reactor().Now();
  TimePoint next = begin + kQuiet;
  bool said = false;
  for (;;) {
    Result<void> slept = co_await disks_.reactor().SleepUntil(next, &done_);
    if (!slept) break;
    Say(disks_.reactor().Now() - begin, terminal);
    said = true;
    next = disks_.reactor().Now() + (terminal ? kOnTerminal : kElsewhere);
  }
  if (said && terminal) std::fputs("\r\x1b[K", stderr);
}

}  // namespace labrack::tool
