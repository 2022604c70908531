// Watch streams: each begins with the run's whole state and goes on with what changes, at most four
// times a second. A watcher that reads slowly gets fewer, fuller events: at most one is being
// written and one waits, into which newer ones are merged.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "labrack/v1/control.pb.h"
#include "storage/base/clock.h"

namespace labrack::api {

inline constexpr std::size_t kNotesMax = 16 << 10;  // bytes of notes that wait for a watcher

// `newer` replaces the state in `event`; trials and notes add up.
void MergeEvent(v1::RunEvent& event, v1::RunEvent newer);
void AppendNote(std::string& notes, const std::string& note);

class Watcher final : public grpc::ServerWriteReactor<v1::RunEvent> {
 public:
  // `on_done` is called once, on a gRPC thread, when the stream has ended.
  static std::shared_ptr<Watcher> Start(std::function<void()> on_done);

  void Offer(v1::RunEvent event);
  void End(grpc::Status status);  // after what waits was written

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit Watcher(std::function<void()> on_done) : on_done_(std::move(on_done)) {}
  void NextLocked();

  std::function<void()> on_done_;
  std::shared_ptr<Watcher> self_;  // shared: gRPC until OnDone, and the hub
  std::mutex mutex_;
  v1::RunEvent current_;
  std::optional<v1::RunEvent> waiting_;
  std::optional<grpc::Status> end_;
  bool writing_ = false;
  bool finished_ = false;
};

// Who watches what, and what has changed since they were told. The loop's thread only.
class WatchHub {
 public:
  static constexpr Nanoseconds kPeriod = std::chrono::milliseconds(250);
  static constexpr std::size_t kWatchersMax = 1000;

  // What the current state of a run is; `trials` null: all. Nothing when it is not under way.
  using Describe = std::function<std::optional<v1::RunEvent>(
      const std::string& run_id, const std::set<std::uint32_t>* trials)>;
  explicit WatchHub(Describe describe) : describe_(std::move(describe)) {}

  // False when there are too many already.
  bool Add(std::uint64_t id, const std::string& run_id, std::shared_ptr<Watcher> watcher);
  void Remove(std::uint64_t id);
  void Touch(const std::string& run_id, const std::set<std::uint32_t>& trials);
  void AddNote(const std::string& run_id, const std::string& note);
  // Tells what is due. Runs in `ended` are told at once and their streams end.
  void Flush(TimePoint now, const std::set<std::string>& ended);
  void EndAll(const grpc::Status& status);

  std::size_t Count(const std::string& run_id) const;
  std::optional<std::string> RunOf(std::uint64_t id) const;
  std::size_t size() const { return runs_.size(); }

 private:
  struct Topic {
    std::map<std::uint64_t, std::shared_ptr<Watcher>> watchers;
    std::set<std::uint32_t> trials;
    std::string notes;
    bool dirty = false;
    TimePoint told_at{};
  };
  void Tell(const std::string& run_id, Topic& topic, TimePoint now);

  Describe describe_;
  std::map<std::string, Topic> topics_;
  std::map<std::uint64_t, std::string> runs_;  // watcher -> run
};

}  // namespace labrack::api
