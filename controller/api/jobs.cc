#include "controller/api/jobs.h"

#include <utility>

namespace labrack::api {

Result<std::unique_ptr<Jobs>> Jobs::Start(const std::filesystem::path& state) {
  Result<std::unique_ptr<catalog::Reader>> reader = catalog::Reader::Open(state);
  if (!reader) return std::unexpected(reader.error());
  return std::unique_ptr<Jobs>(new Jobs(*std::move(reader)));
}

Jobs::Jobs(std::unique_ptr<catalog::Reader> reader)
    : reader_(std::move(reader)), queue_(kQueueMax), thread_([this] { Work(); }) {}

Jobs::~Jobs() {
  queue_.Close();
  thread_.join();
}

void Jobs::Work() {
  while (!queue_.closed()) {
    for (Queue::Task& job : queue_.Take(std::chrono::seconds(1), 1)) job(*reader_);
  }
}

}  // namespace labrack::api
