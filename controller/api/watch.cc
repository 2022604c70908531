#include "controller/api/watch.h"

#include <utility>

namespace labrack::api {

void AppendNote(std::string& notes, const std::string& note) {
  if (note.empty() || notes.size() + note.size() > kNotesMax) return;
  if (!notes.empty()) notes += "\n";
  notes += note;
}

void MergeEvent(v1::RunEvent& event, v1::RunEvent newer) {
  event.set_wall_ns(newer.wall_ns());
  event.mutable_summary()->Swap(newer.mutable_summary());
  event.mutable_hosts()->Swap(newer.mutable_hosts());
  AppendNote(*event.mutable_note(), newer.note());
  for (v1::TrialSummary& trial : *newer.mutable_trials()) {
    v1::TrialSummary* known = nullptr;
    for (v1::TrialSummary& candidate : *event.mutable_trials()) {
      if (candidate.index() == trial.index()) known = &candidate;
    }
    (known != nullptr ? known : event.add_trials())->Swap(&trial);
  }
}

std::shared_ptr<Watcher> Watcher::Start(std::function<void()> on_done) {
  std::shared_ptr<Watcher> watcher(new Watcher(std::move(on_done)));
  watcher->self_ = watcher;
  return watcher;
}

void Watcher::Offer(v1::RunEvent event) {
  std::lock_guard lock(mutex_);
  if (end_) return;
  if (waiting_) {
    MergeEvent(*waiting_, std::move(event));
  } else {
    waiting_ = std::move(event);
  }
  NextLocked();
}

void Watcher::End(grpc::Status status) {
  std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(status);
  NextLocked();
}

void Watcher::NextLocked() {
  if (writing_ || finished_) return;
  if (waiting_) {
    current_ = *std::move(waiting_);
    waiting_.reset();
    writing_ = true;
    StartWrite(&current_);
  } else if (end_) {
    finished_ = true;
    Finish(*end_);
  }
}

void Watcher::OnWriteDone(bool ok) {
  std::lock_guard lock(mutex_);
  writing_ = false;
  if (!ok) {
    waiting_.reset();
    if (!end_) end_ = grpc::Status::CANCELLED;
  }
  NextLocked();
}

void Watcher::OnCancel() {
  std::lock_guard lock(mutex_);
  waiting_.reset();
  if (!end_) end_ = grpc::Status::CANCELLED;
  NextLocked();
}

void Watcher::OnDone() {
  on_done_();
  const std::shared_ptr<Watcher> last = std::move(self_);  // may delete this on the way out
}

bool WatchHub::Add(std::uint64_t id, const std::string& run_id, std::shared_ptr<Watcher> watcher) {
  if (runs_.size() >= kWatchersMax) return false;
  if (std::optional<v1::RunEvent> whole = describe_(run_id, nullptr)) {
    watcher->Offer(*std::move(whole));
  }
  topics_[run_id].watchers.emplace(id, std::move(watcher));
  runs_.emplace(id, run_id);
  return true;
}

void WatchHub::Remove(std::uint64_t id) {
  const auto run = runs_.find(id);
  if (run == runs_.end()) return;
  const auto topic = topics_.find(run->second);
  if (topic != topics_.end()) {
    topic->second.watchers.erase(id);
    if (topic->second.watchers.empty()) topics_.erase(topic);
  }
  runs_.erase(run);
}

void WatchHub::Touch(const std::string& run_id, const std::set<std::uint32_t>& trials) {
  const auto topic = topics_.find(run_id);
  if (topic == topics_.end()) return;
  topic->second.dirty = true;
  topic->second.trials.insert(trials.begin(), trials.end());
}

void WatchHub::AddNote(const std::string& run_id, const std::string& note) {
  const auto topic = topics_.find(run_id);
  if (topic == topics_.end()) return;
  topic->second.dirty = true;
  AppendNote(topic->second.notes, note);
}

void WatchHub::Tell(const std::string& run_id, Topic& topic, TimePoint now) {
  std::optional<v1::RunEvent> event = describe_(run_id, &topic.trials);
  if (event) {
    event->set_note(topic.notes);
    for (const auto& [id, watcher] : topic.watchers) watcher->Offer(*event);
  }
  topic.dirty = false;
  topic.trials.clear();
  topic.notes.clear();
  topic.told_at = now;
}

void WatchHub::Flush(TimePoint now, const std::set<std::string>& ended) {
  for (auto topic = topics_.begin(); topic != topics_.end();) {
    const bool over = ended.contains(topic->first);
    if (over || (topic->second.dirty && now - topic->second.told_at >= kPeriod)) {
      Tell(topic->first, topic->second, now);
    }
    if (!over) {
      ++topic;
      continue;
    }
    for (const auto& [id, watcher] : topic->second.watchers) {
      watcher->End(grpc::Status::OK);
      runs_.erase(id);
    }
    topic = topics_.erase(topic);
  }
}

void WatchHub::EndAll(const grpc::Status& status) {
  for (auto& [run_id, topic] : topics_) {
    for (const auto& [id, watcher] : topic.watchers) watcher->End(status);
  }
  topics_.clear();
  runs_.clear();
}

std::size_t WatchHub::Count(const std::string& run_id) const {
  const auto topic = topics_.find(run_id);
  return topic == topics_.end() ? 0 : topic->second.watchers.size();
}

std::optional<std::string> WatchHub::RunOf(std::uint64_t id) const {
  const auto run = runs_.find(id);
  if (run == runs_.end()) return std::nullopt;
  return run->second;
}

}  // namespace labrack::api
