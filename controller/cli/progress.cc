#include "controller/cli/progress.h"

#include <utility>

#include <fmt/format.h>

#include "controller/cli/json_lines.h"
#include "controller/cli/live_view.h"
#include "controller/cli/output.h"
#include "controller/cli/plain_view.h"

namespace labrack::cli {
namespace {

constexpr Nanoseconds kRedrawEvery = std::chrono::milliseconds(500);

class NoView final : public ProgressView {
 public:
  void OnEvent(const v1::RunEvent& event, TimePoint now) override { state_.Apply(event, now); }
  void OnTick(TimePoint) override {}
  void Say(const std::string&) override {}
  void Finish(TimePoint) override {}
};

class PlainView final : public ProgressView {
 public:
  explicit PlainView(int descriptor) : descriptor_(descriptor) {}

  void OnEvent(const v1::RunEvent& event, TimePoint now) override {
    const RunState before = state_;
    state_.Apply(event, now);
    const std::string clock = ClockText(Nanoseconds(event.wall_ns()));
    for (const std::string& line : PlainLines(before, state_, event, clock)) {
      WriteAll(descriptor_, line + "\n");
      last_line_ = now;
    }
  }
  void OnTick(TimePoint now) override {
    if (last_line_ == TimePoint()) last_line_ = now;
    if (now - last_line_ < kHeartbeat || state_.summary().run_id().empty()) return;
    last_line_ = now;
    WriteAll(descriptor_, PlainHeartbeat(state_, now, ClockText(WallClockNow())) + "\n");
  }
  void Say(const std::string& text) override {
    WriteAll(descriptor_, fmt::format("{} {}\n", ClockText(WallClockNow()), text));
  }
  void Finish(TimePoint) override {}

 private:
  int descriptor_;
  TimePoint last_line_;
};

// Whoever makes the stream begins it with the version line (Voice).
class JsonView final : public ProgressView {
 public:
  explicit JsonView(int descriptor) : descriptor_(descriptor) {}

  void OnEvent(const v1::RunEvent& event, TimePoint now) override {
    state_.Apply(event, now);
    WriteAll(descriptor_, JsonEventLine(event) + "\n");
  }
  void OnTick(TimePoint) override {}
  void Say(const std::string& text) override {
    WriteAll(descriptor_, JsonTextLine("message", text) + "\n");
  }
  void Finish(TimePoint) override {}

 private:
  int descriptor_;
};

// Redraws its lines in place: up as many as were drawn, each rewritten and cleared to its end, and
// what is left of a longer picture below cleared. Lines said in between scroll away above it.
class LiveView final : public ProgressView {
 public:
  LiveView(int descriptor, const Terminal& terminal, std::string hint)
      : descriptor_(descriptor), terminal_(terminal), hint_(std::move(hint)) {}

  void OnEvent(const v1::RunEvent& event, TimePoint now) override {
    state_.Apply(event, now);
    for (const std::string& note : NotesOf(event)) {
      Say(fmt::format("{} {}", ClockText(Nanoseconds(event.wall_ns())), note));
    }
  }
  void OnTick(TimePoint now) override {
    if (state_.summary().run_id().empty()) return;
    if (drawn_ != 0 && now - last_draw_ < kRedrawEvery) return;
    Draw(now, hint_);
  }
  void Say(const std::string& text) override {
    WriteAll(descriptor_, Erase() + text + "\n");
    drawn_ = 0;
  }
  void Finish(TimePoint now) override {
    if (!state_.summary().run_id().empty()) Draw(now, "");
    drawn_ = 0;
  }

 private:
  std::string Erase() const { return drawn_ == 0 ? "" : fmt::format("\033[{}A\r\033[J", drawn_); }
  void Draw(TimePoint now, const std::string& hint) {
    const std::vector<ViewLine> lines =
        LiveLines(state_, now, {.size = Terminal::Size(), .utf8 = terminal_.utf8, .hint = hint});
    // One write, so that the picture never flickers half drawn.
    WriteAll(descriptor_, Erase() + Paint(lines, terminal_.error_colour));
    drawn_ = lines.size();
    last_draw_ = now;
  }

  int descriptor_;
  Terminal terminal_;
  std::string hint_;
  std::size_t drawn_ = 0;
  TimePoint last_draw_;
};

}  // namespace

ProgressKind ChooseProgress(const std::string& wanted, const Terminal& terminal) {
  if (wanted == "live") return ProgressKind::kLive;
  if (wanted == "plain") return ProgressKind::kPlain;
  if (wanted == "json") return ProgressKind::kJson;
  if (wanted == "none") return ProgressKind::kNone;
  return terminal.error && !terminal.dumb ? ProgressKind::kLive : ProgressKind::kPlain;
}

std::unique_ptr<ProgressView> MakeProgressView(ProgressKind kind, int descriptor,
                                               const Terminal& terminal, std::string hint) {
  switch (kind) {
    case ProgressKind::kLive:
      return std::make_unique<LiveView>(descriptor, terminal, std::move(hint));
    case ProgressKind::kPlain:
      return std::make_unique<PlainView>(descriptor);
    case ProgressKind::kJson:
      return std::make_unique<JsonView>(descriptor);
    case ProgressKind::kNone:
      break;
  }
  return std::make_unique<NoView>();
}

}  // namespace labrack::cli
