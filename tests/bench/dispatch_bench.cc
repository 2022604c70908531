// What it takes to get a trivial trial done on 1, 8 and 32 agents, from submitting it to its
// result, beside fio's client and servers doing the same; and how a controller carries 1,000
// simulated agents. Run by `./lab bench dispatch`. The agents are the real processes; the
// controller is one too where its memory is measured.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "agent/exec/child.h"
#include "agent/exec/run.h"
#include "labrack/v1/control.grpc.pb.h"
#include "tests/bench/goals.h"
#include "tests/sim/free_port.h"
#include "tests/sim/sim_agent.h"

namespace labrack::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kRounds = 5;
constexpr int kSimulatedAgents = 1000;
constexpr Nanoseconds kOnlineLimit = seconds(60);

double SecondsSince(TimePoint begin) {
  return static_cast<double>((MonotonicClock().Now() - begin).count()) * 1e-9;
}

std::string Playbook(int hosts) {
  return fmt::format(
      "playbook: trivial\nhosts: {{min: {}}}\nstacks: {{here: {{host: {{dir: {{}}}}}}}}\n"
      "workloads: {{w: {{stream: {{file: 4KiB, block: 4KiB, verify: none}}}}}}\ntrials: 1\n",
      hosts);
}

// A controller and real agents as processes, on loopback, in a directory of their own.
class Lab {
 public:
  static Result<std::unique_ptr<Lab>> Start(int agents) {
    // The least lead that lets that many agents on one machine answer before the common start.
    const int lead_ms = agents > 8 ? 100 : 20;
    std::string name = (std::filesystem::temp_directory_path() / "labrack-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return FailErrno("mkdtemp", name);
    std::unique_ptr<Lab> lab(new Lab(name));
    if (Result<void> started = lab->StartController(lead_ms); !started) {
      return std::unexpected(started.error());
    }
    for (int i = 0; i < agents; ++i) {
      if (Result<void> started = lab->StartAgent(i); !started) {
        return std::unexpected(started.error());
      }
    }
    if (Result<void> online = lab->WaitForHosts(agents); !online) {
      return std::unexpected(online.error());
    }
    return lab;
  }

  ~Lab() {
    for (exec::Child& process : processes_) {
      if (!process.Signal(SIGTERM)) continue;
      const Result<exec::ExitStatus> ended =
          process.WaitUntil(MonotonicClock().Now() + seconds(10));
      if (!ended) std::ignore = process.KillGroup();
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  std::string agents_address() const { return fmt::format("127.0.0.1:{}", agents_port_); }
  pid_t controller_pid() const { return processes_.front().pid(); }

  // From the submission to the run's end.
  Result<double> RunOnce(int hosts) {
    const TimePoint begin = MonotonicClock().Now();
    Result<std::string> run = Submit(hosts);
    if (!run) return std::unexpected(run.error());
    grpc::ClientContext context;
    v1::WatchRequest request;
    request.set_run_id(*run);
    std::unique_ptr<grpc::ClientReader<v1::RunEvent>> reader = stub_->Watch(&context, request);
    v1::RunEvent event;
    v1::RunSummary last;
    while (reader->Read(&event)) last = event.summary();
    const double took = SecondsSince(begin);
    if (!reader->Finish().ok() || last.trials_done() != 1) {
      return Fail(Errc::kInternal, *run, "the trivial trial did not end: " + last.reason());
    }
    if (Result<void> results = CheckResults(*run, hosts); !results) {
      return std::unexpected(results.error());
    }
    return took;
  }

  // Every host measured. A window of microseconds need not overlap with another host's, so the
  // trial as a whole may well be invalid as a comparison; that is not what is timed here.
  Result<void> CheckResults(const std::string& run_id, int hosts) {
    grpc::ClientContext context;
    v1::ShowRunRequest request;
    request.set_run_id(run_id);
    v1::RunRecord record;
    const grpc::Status status = stub_->ShowRun(&context, request, &record);
    if (!status.ok()) return Fail(Errc::kUnavailable, status.error_message());
    int measured = 0;
    for (const v1::AssignmentRecord& assignment : record.trials(0).assignments()) {
      measured += assignment.result().measurement().outcome() == v1::OUTCOME_OK;
    }
    if (measured == hosts) return {};
    return Fail(Errc::kInternal, run_id, fmt::format("{} of {} hosts measured", measured, hosts));
  }

  Result<std::string> Submit(int hosts) {
    grpc::ClientContext context;
    v1::SubmitRequest request;
    request.mutable_source()->set_file("trivial.yaml");
    request.mutable_source()->set_text(Playbook(hosts));
    v1::SubmitReply reply;
    const grpc::Status status = stub_->Submit(&context, request, &reply);
    if (!status.ok()) return Fail(Errc::kUnavailable, status.error_message());
    if (reply.run_id().empty()) return Fail(Errc::kInternal, "the playbook was refused");
    return reply.run_id();
  }

 private:
  explicit Lab(std::string directory) : directory_(std::move(directory)) {}

  Result<void> Spawn(const std::string& program, const std::string& config,
                     const std::string& text) {
    const std::filesystem::path path = directory_ / config;
    std::ofstream(path) << text;
    const std::filesystem::path beside =
        std::filesystem::read_symlink("/proc/self/exe").parent_path();
    Result<exec::Child> child =
        exec::Child::Spawn({.words = {(beside / program).string(), "--config", path.string()},
                            .directory = directory_,
                            .environment = {}},
                           {.ends_with_caller = true});
    if (!child) return std::unexpected(child.error());
    processes_.push_back(std::move(*child));
    return {};
  }

  Result<void> StartController(int start_lead_ms) {
    const std::string text = fmt::format(
        "state: {}/controller\nagents_listen: 127.0.0.1:{}\ncontrol_listen: 127.0.0.1:{}\n"
        "http_listen: \"\"\nheartbeat: 1s\nstart_lead: {}ms\n",
        directory_.string(), agents_port_, control_port_, start_lead_ms);
    if (Result<void> started = Spawn("labrack-controller", "controller.yaml", text); !started) {
      return started;
    }
    stub_ = v1::Control::NewStub(grpc::CreateChannel(fmt::format("127.0.0.1:{}", control_port_),
                                                     grpc::InsecureChannelCredentials()));
    return WaitForHosts(0);
  }

  Result<void> StartAgent(int index) {
    return Spawn("labrack-agent", fmt::format("agent-{}.yaml", index),
                 fmt::format("controller: 127.0.0.1:{}\nstate: {}/agent-{}\nname: agent-{}\n"
                             "metrics_listen: \"\"\n",
                             agents_port_, directory_.string(), index, index));
  }

  Result<void> WaitForHosts(int count) {
    const TimePoint until = MonotonicClock().Now() + kOnlineLimit;
    while (MonotonicClock().Now() < until) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      context.set_deadline(std::chrono::system_clock::now() + seconds(10));
      v1::HostsReply reply;
      const grpc::Status status = stub_->Hosts(&context, v1::HostsRequest(), &reply);
      int online = 0;
      for (const v1::HostRecord& host : reply.hosts()) online += host.session_state() == "ONLINE";
      if (status.ok() && online >= count) return {};
      std::this_thread::sleep_for(milliseconds(50));
    }
    return Fail(Errc::kTimedOut, fmt::format("{} agents did not attach", count));
  }

  std::filesystem::path directory_;
  int agents_port_ = sim::FreePort();
  int control_port_ = sim::FreePort();
  std::vector<exec::Child> processes_;
  std::unique_ptr<v1::Control::Stub> stub_;
};

// fio's servers, and its client sending each the same small job.
class FioFleet {
 public:
  static Result<std::unique_ptr<FioFleet>> Start(int servers) {
    std::string name = (std::filesystem::temp_directory_path() / "labrack-fio-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return FailErrno("mkdtemp", name);
    std::unique_ptr<FioFleet> fleet(new FioFleet(name));
    for (int i = 0; i < servers; ++i) {
      const std::string at = fmt::format("127.0.0.1,{}", sim::FreePort());
      std::ofstream(fleet->directory_ / fmt::format("{}.fio", i))
          << fmt::format("[j{}]\nrw=write\nsize=4k\nfilename={}/{}.dat\n", i, name, i);
      Result<exec::Child> server = exec::Child::Spawn(
          {.words = {"fio", "--server=" + at}, .directory = name, .environment = {}},
          {.ends_with_caller = true});
      if (!server) return std::unexpected(server.error());
      fleet->servers_.push_back(std::move(*server));
      fleet->client_.push_back("--client=" + at);
      fleet->client_.push_back((fleet->directory_ / fmt::format("{}.fio", i)).string());
    }
    std::this_thread::sleep_for(seconds(1));  // fio does not say when it listens
    return fleet;
  }

  ~FioFleet() {
    for (exec::Child& server : servers_) {
      std::ignore = server.KillGroup();
      std::ignore = server.WaitUntil(MonotonicClock().Now() + seconds(5));
    }
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  Result<double> RunOnce() {
    const TimePoint begin = MonotonicClock().Now();
    const Result<exec::Outcome> ran = exec::RunChecked({.words = client_,
                                                        .directory = directory_,
                                                        .environment = {},
                                                        .timeout = std::chrono::minutes(1)});
    if (!ran) return std::unexpected(ran.error());
    return SecondsSince(begin);
  }

 private:
  explicit FioFleet(std::string directory) : directory_(std::move(directory)) {}

  std::filesystem::path directory_;
  std::vector<exec::Child> servers_;
  std::vector<std::string> client_ = {"fio"};
};

Series FailedSeries(const Error& error) { return Series{.values = {}, .error = error}; }

void AddFleetRows(Goals& goals, int agents, double goal_seconds) {
  const std::string name = fmt::format("trivial trial on {} agents", agents);
  Result<std::unique_ptr<Lab>> lab = Lab::Start(agents);
  if (!lab) {
    return goals.AddAbsolute(name, "s", FailedSeries(lab.error()), Direction::kAtMost,
                             goal_seconds);
  }
  Result<std::unique_ptr<FioFleet>> fio = FioFleet::Start(agents);
  const auto ours = [&] { return (*lab)->RunOnce(agents); };
  const auto peer = [&]() -> Result<double> {
    return fio ? (*fio)->RunOnce() : Result<double>(std::unexpected(fio.error()));
  };
  const std::vector<Series> series = Interleave(kRounds, {ours, peer});
  goals.AddAbsolute(name, "s", series[0], Direction::kAtMost, goal_seconds);
  goals.AddRatio(name + " / fio client", "s", series[0], series[1], Direction::kAtMost, 1);
}

Result<double> MemoryMiB(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return Fail(Errc::kNotFound, fmt::format("process {}", pid), "has no VmHWM");
}

// 1,000 simulated agents in this process, the controller in its own.
void AddSimulatedRows(Goals& goals) {
  const std::string assigned = fmt::format("{} simulated agents: all assigned", kSimulatedAgents);
  Series took;
  Series memory;
  Result<std::unique_ptr<Lab>> lab = Lab::Start(0);
  if (lab) {
    sim::SimFleet fleet;
    for (int i = 0; i < kSimulatedAgents; ++i) {
      sim::SimAgentOptions options;
      options.controller = (*lab)->agents_address();
      options.id = fmt::format("sim-{}", i);
      options.seed = Seed{static_cast<std::uint64_t>(i)};
      options.step_time = seconds(5);
      fleet.Add(options);
    }
    if (!fleet.WaitForOnline(kSimulatedAgents, kOnlineLimit)) {
      took.error = Error(Errc::kTimedOut, "the simulated agents did not attach");
    } else {
      const TimePoint begin = MonotonicClock().Now();
      const Result<std::string> run = (*lab)->Submit(kSimulatedAgents);
      while (run && fleet.held_count() < kSimulatedAgents && SecondsSince(begin) < 60) {
        std::this_thread::sleep_for(milliseconds(5));
      }
      took.values.push_back(SecondsSince(begin));
      if (!run) took.error = run.error();
    }
    const Result<double> used = MemoryMiB((*lab)->controller_pid());
    if (used) {
      memory.values.push_back(*used);
    } else {
      memory.error = used.error();
    }
  } else {
    took.error = memory.error = lab.error();
  }
  goals.AddAbsolute(assigned, "s", took, Direction::kAtMost, 2);
  goals.AddAbsolute("their controller's memory", "MiB", memory, Direction::kAtMost, 300);
}

int Main(int argc, char** argv) {
  Goals goals("dispatch");
  AddFleetRows(goals, 1, 0.15);
  AddFleetRows(goals, 8, 0.2);
  AddFleetRows(goals, 32, 0.5);
  AddSimulatedRows(goals);
  return goals.Finish(argc, argv);
}

}  // namespace
}  // namespace labrack::bench

int main(int argc, char** argv) { return labrack::bench::Main(argc, argv); }
