// A bar on standard error for what takes longer than two seconds, made from what the disks have
// moved. On a terminal it is drawn anew in its line, elsewhere a line is said now and then.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "storage/base/bytes.h"
#include "storage/runtime/task_group.h"
#include "storage/tool/disks.h"

namespace labrack::tool {

class Progress {
 public:
  // `expected`: bytes that will be read and written in all; zero where that is not known.
  Progress(Disks& disks, std::string what, Bytes expected)
      : disks_(disks), what_(std::move(what)), expected_(expected) {}

  // Runs the task to its end, with the bar beside it.
  template <typename T>
  T Run(runtime::Task<T> task) {
    std::optional<T> result;
    disks_.reactor().Run(Both(this, std::move(task), &result));
    return *std::move(result);
  }

 private:
  template <typename T>
  static runtime::Task<void> Both(Progress* self, runtime::Task<T> task, std::optional<T>* result) {
    runtime::TaskGroup group(self->disks_.reactor());
    group.Spawn(self->Tell());
    T value = co_await std::move(task);
    result->emplace(std::move(value));
    self->done_.Cancel();
    co_await group.Join();
  }
  runtime::Task<void> Tell();
  void Say(Nanoseconds since, bool terminal) const;

  Disks& disks_;
  std::string what_;
  Bytes expected_;
  runtime::CancelToken done_;
};

}  // namespace labrack::tool
