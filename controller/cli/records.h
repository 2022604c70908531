// What is known about runs, for verbs that look:
//
//   --controller ADDR, or an open lab on this machine ----> its controller is asked
//   else                                              ----> the catalog is read in this process:
//        no lock, no port, nothing written, so that several look at once, beside whoever starts
//        a lab, and without write access
//
// Only a catalog of an older build is brought up to date first, in a lab that takes the lock.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "controller/cli/client.h"
#include "controller/cli/verb.h"
#include "controller/report/lists.h"

namespace labrack::api {
class Archive;
}

namespace labrack::cli {

class Records {
 public:
  static Result<Records> Open(const Call& call);
  ~Records();
  Records(Records&& other) noexcept;
  Records& operator=(Records&& other) noexcept;

  // The controller that is asked; null when there is none. A lab on this machine that ends under a
  // question is not missed: the catalog answers.
  Client* client() { return client_.get(); }

  // A run that has not ended and that nobody carries on says so in its reason; a report of one is
  // invalid (5).
  Result<v1::ListRunsReply> ListRuns(std::uint32_t limit);
  Result<v1::RunRecord> ShowRun(const std::string& run_id, v1::RecordLevel level);
  Result<v1::RunRecord> FetchRun(const std::string& run_id);  // with all results
  Result<v1::Report> Compare(const std::string& base_run, const std::string& test_run);
  // What the runs of the last answer are that have not ended.
  report::Unfinished unfinished() const { return unfinished_; }

 private:
  Records(std::filesystem::path state, std::unique_ptr<Client> client,
          std::unique_ptr<api::Archive> archive);
  static Result<Records> OpenHere(const std::filesystem::path& state);
  template <typename Reply, typename Question>
  Result<Reply> Ask(Question question);
  bool TurnToArchive();
  Result<void> LookForLab();
  void Mark(v1::RunSummary& run) const;
  void Mark(const v1::RunSummary& run, v1::Report& report) const;

  std::filesystem::path state_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<api::Archive> archive_;  // null: the client is asked
  report::Unfinished unfinished_ = report::Unfinished::kGoesOn;
};

}  // namespace labrack::cli
