// Goal: whoever asks the trial's event log a question, or leaves a word in it, never waits behind a
// sync that hangs. Method: a clock that stops in the middle of an addition, as a slow disk would.
#include "agent/worker/event_log.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace labrack::worker {
namespace {

class StoppingClock final : public Clock {
 public:
  TimePoint Now() const override {
    asked = true;
    while (stopped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return TimePoint(std::chrono::seconds(1));
  }
  mutable std::atomic<bool> asked = false;
  std::atomic<bool> stopped = false;
};

TEST(EventLogTest, QuestionsAndLastWordsDoNotWaitBehindASync) {
  std::string pattern = (std::filesystem::temp_directory_path() / "event-log-XXXXXX").string();
  const std::filesystem::path directory = mkdtemp(pattern.data());
  Result<spool::SpoolWriter> writer = spool::SpoolWriter::Create(
      directory / "spool", {.assignment_id = "run-1/0/st-01", .epoch = 1}, {});
  ASSERT_TRUE(writer);
  StoppingClock clock;
  EventLog log(*std::move(writer), clock, [] {});
  EXPECT_EQ(log.last_seq(), 0U);
  log.Note("first");
  EXPECT_EQ(log.last_seq(), 1U);
  clock.asked = false;
  clock.stopped = true;
  std::thread slow([&] { log.Note("second"); });
  while (!clock.asked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(log.last_seq(), 1U);
  EXPECT_EQ(log.dropped_count(), 0U);
  EXPECT_FALSE(log.TryNote("last words"));
  clock.stopped = false;
  slow.join();
  EXPECT_TRUE(log.TryNote("third"));
  EXPECT_EQ(log.last_seq(), 3U);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace labrack::worker
