#include "tests/e2e/trial_support.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "agent/exec/family.h"
#include "agent/worker/spool/spool_reader.h"
#include "proto/fields/fields.h"

namespace labrack::e2e {

TempDirectory::TempDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "labrack-e2e-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Process::Process(std::vector<std::string> words, const std::filesystem::path& output) {
  int input[2];
  if (pipe2(input, O_CLOEXEC) != 0) std::abort();
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(input[0], STDIN_FILENO);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(input[0]);
  input_ = input[1];
}

Process::~Process() {
  CloseInput();
  if (!exit_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Process::Signal(int number) const {
  if (!exit_) kill(pid_, number);
}

void Process::CloseInput() {
  if (input_ >= 0) close(input_);
  input_ = -1;
}

std::optional<int> Process::Wait(Nanoseconds longest) {
  WaitUntil(longest, [this] {
    if (exit_) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  });
  return exit_;
}

std::string Binary(const std::string& name) { return std::string(LABRACK_BIN_DIR) + "/" + name; }

std::string ReadText(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  try {
    return {std::istreambuf_iterator<char>(stream), {}};
  } catch (const std::ios_base::failure&) {  // of a process that has just gone
    return {};
  }
}

namespace {

v1::AssignmentSpec OnDirectory(const std::string& id, std::uint64_t epoch) {
  v1::AssignmentSpec spec;
  spec.set_assignment_id(id);
  spec.set_epoch(epoch);
  spec.set_run_id("run-1");
  spec.set_playbook_name("test");
  spec.set_seed(7);
  fields::FillDefaults(*spec.mutable_stack());
  spec.mutable_stack()->set_name("dir");
  spec.mutable_stack()->mutable_host()->mutable_dir();
  fields::FillDefaults(*spec.mutable_disks());
  fields::FillDefaults(*spec.mutable_timeouts());
  return spec;
}

}  // namespace

v1::AssignmentSpec SyncPagesOnDirectory(const std::string& id, std::uint64_t epoch,
                                        Nanoseconds duration) {
  v1::AssignmentSpec spec = OnDirectory(id, epoch);
  spec.mutable_workload()->set_name("pages");
  v1::SyncPagesWorkload& pages = *spec.mutable_workload()->mutable_sync_pages();
  fields::FillDefaults(pages);
  pages.set_file(1 << 20);
  pages.set_duration(duration.count());
  spec.set_cell_name("dir/pages");
  return spec;
}

v1::AssignmentSpec StreamOnDirectory(const std::string& id, std::uint64_t epoch) {
  v1::AssignmentSpec spec = OnDirectory(id, epoch);
  spec.mutable_workload()->set_name("stream");
  v1::StreamWorkload& stream = *spec.mutable_workload()->mutable_stream();
  fields::FillDefaults(stream);
  stream.set_file(8 << 20);
  spec.set_cell_name("dir/stream");
  return spec;
}

v1::AssignmentSpec OnExt4(v1::AssignmentSpec spec) {
  spec.mutable_stack()->set_name("ext4");
  fields::FillDefaults(*spec.mutable_stack()->mutable_host()->mutable_ext4());
  spec.mutable_disks()->set_count(1);
  spec.mutable_disks()->set_size(64 << 20);
  return spec;
}

std::vector<v1::EventRecord> ReadSpool(const std::filesystem::path& trial,
                                       const v1::AssignmentSpec& spec) {
  spool::SpoolReader reader(trial / "spool",
                            {.assignment_id = spec.assignment_id(), .epoch = spec.epoch()});
  std::vector<v1::EventRecord> records;
  for (;;) {
    Result<std::optional<spool::Record>> record = reader.Next();
    if (!record || !*record) return records;
    v1::EventRecord event;
    if (event.ParseFromString((*record)->payload)) records.push_back(std::move(event));
  }
}

const v1::AssignmentResult* FindResult(const std::vector<v1::EventRecord>& records) {
  for (const v1::EventRecord& record : records) {
    if (record.has_result()) return &record.result();
  }
  return nullptr;
}

bool HasBegun(const std::vector<v1::EventRecord>& records, v1::PhaseKind phase) {
  return std::any_of(records.begin(), records.end(), [&](const v1::EventRecord& record) {
    return record.body_case() == v1::EventRecord::kPhaseBegun && record.phase_begun() == phase;
  });
}

std::uint64_t CountOf(const v1::AssignmentResult& result, const std::string& operation) {
  std::uint64_t count = 0;
  for (const v1::StepResult& step : result.steps()) {
    for (const v1::OperationResult& one : step.operations()) {
      if (one.operation() == operation) count += one.count();
    }
  }
  return count;
}

std::vector<std::string> FilesBelow(const std::filesystem::path& directory) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    files.push_back(it->path().lexically_relative(directory).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> found = exec::AllProcesses();
  std::erase_if(found, [&](pid_t pid) {
    return ReadText("/proc/" + std::to_string(pid) + "/cmdline").find(text) == std::string::npos;
  });
  return found;
}

}  // namespace labrack::e2e
