#include "controller/plan/checks.h"

#include <set>
#include <string>

#include <re2/re2.h>

#include "controller/plan/estimate.h"
#include "controller/plan/fio_job.h"
#include "controller/plan/names.h"
#include "controller/plan/stack_facts.h"
#include "controller/plan/volume_checks.h"
#include "storage/base/units.h"

namespace labrack::plan {
namespace {

// O_DIRECT wants whole logical blocks; 4 KiB is right on every disk.
constexpr std::uint64_t kDirectUnit = 4096;

// One workload of one cell, under checking.
class WorkloadCheck {
 public:
  WorkloadCheck(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter)
      : playbook_(playbook),
        cell_(cell),
        reporter_(reporter),
        path_("workloads." + cell.workload.name() + "." + WorkloadKind(cell.workload)) {}

  void Run() {
    const v1::Workload& workload = cell_.workload;
    switch (workload.kind_case()) {
      case v1::Workload::kStream:
        return Stream(workload.stream());
      case v1::Workload::kCopy:
        return BlockFits("block", workload.copy().block(), workload.copy().file());
      case v1::Workload::kChecksum:
        return BlockFits("block", workload.checksum().block(), workload.checksum().file());
      case v1::Workload::kRandom:
        return RandomBlocks(workload.random());
      case v1::Workload::kSyncPages:
        return SyncPages(workload.sync_pages());
      case v1::Workload::kFiles:
        return Files(workload.files());
      case v1::Workload::kFio:
        return Fio(workload.fio());
      case v1::Workload::kExec:
        return Exec(workload.exec());
      case v1::Workload::KIND_NOT_SET:
        return;
    }
  }

 private:
  void Report(const std::string& field, Finding finding) {
    if (!cell_.conditions.empty()) finding.notes.push_back("with " + cell_.conditions);
    reporter_.Add(playbook_.Find(path_ + "." + field), std::move(finding));
  }

  void BlockFits(const std::string& field, std::uint64_t block, std::uint64_t file) {
    if (block <= file) return;
    const bool written = playbook_.places.contains(path_ + "." + field);
    Report(written ? field : "file",
           {"LR321",
            field + " of " + FormatBytesExact(Bytes(block)) + " is larger than the file of " +
                FormatBytesExact(Bytes(file)),
            "",
            {},
            {"make `" + field + "` smaller or `file` larger"}});
  }

  void DirectUnit(const std::string& field, std::uint64_t value) {
    if (value % kDirectUnit == 0) return;
    Report(field, {"LR320",
                   "with `direct: true`, " + field + " must be a multiple of 4KiB; it is " +
                       FormatBytesExact(Bytes(value)),
                   "",
                   {},
                   {"set `" + field + "` to a multiple of 4KiB, or `direct: false`"}});
  }

  void Warmup(std::int64_t warmup, std::int64_t duration) {
    if (warmup == 0 || duration == 0 || warmup < duration) return;
    Report("warmup", {"LR323",
                      "the warm-up of " + FormatDurationExact(Nanoseconds(warmup)) +
                          " is as long as the measurement of " +
                          FormatDurationExact(Nanoseconds(duration)) + " or longer",
                      "",
                      {"`duration` is the measured time, after the warm-up"},
                      {"make `duration` longer than `warmup`"}});
  }

  // The field where it was written, and else the limit.
  std::string WrittenPath(const std::string& field) const {
    const std::string path = path_ + "." + field;
    return playbook_.places.contains(path) ? path : "timeouts.measure";
  }

  void ReportTooLong(const std::string& field, const std::string& what, Nanoseconds time) {
    const Nanoseconds limit(playbook_.playbook.timeouts().measure());
    Finding finding{"LR325",
                    what + " " + FormatDurationExact(time) + ", and `timeouts.measure` is " +
                        FormatDurationExact(limit),
                    "",
                    {"a step that takes longer than its limit ends the trial, without a result"},
                    {"raise `timeouts.measure` above that, or make `" + field + "` shorter"}};
    if (!cell_.conditions.empty()) finding.notes.push_back("with " + cell_.conditions);
    reporter_.Add(playbook_.Find(WrittenPath(field)), std::move(finding));
  }

  // What is under way at the end is waited for, so the limit lies beyond it.
  void FitsMeasure(const std::string& field, std::int64_t warmup, std::int64_t duration) {
    const std::int64_t limit = playbook_.playbook.timeouts().measure();
    if (duration == 0 || limit == 0 || warmup + duration < limit) return;
    ReportTooLong(field, warmup > 0 ? "warm-up and measurement take" : "the measurement takes",
                  Nanoseconds(warmup + duration));
  }

  // A command's limit that was not written gives way to the phase's.
  void CommandFitsMeasure(std::int64_t timeout) {
    const std::int64_t limit = playbook_.playbook.timeouts().measure();
    if (limit == 0 || timeout <= limit || !playbook_.places.contains(path_ + ".timeout")) return;
    ReportTooLong("timeout", "the command may take", Nanoseconds(timeout));
  }

  void Stream(const v1::StreamWorkload& stream) {
    BlockFits("block", stream.block(), stream.file());
    if (!stream.direct()) return;
    DirectUnit("block", stream.block());
    DirectUnit("file", stream.file());
  }

  void RandomBlocks(const v1::RandomWorkload& random) {
    BlockFits("block", random.block(), random.file());
    if (random.direct()) {
      DirectUnit("block", random.block());
      DirectUnit("file", random.file());
    }
    const v1::StopRule& stop = random.stop();
    if (random.has_stop() && stop.duration() == 0 && stop.operations() == 0 && stop.bytes() == 0) {
      Report("stop", {"LR323",
                      "`stop` says nothing",
                      "",
                      {},
                      {"give `duration`, `operations` or `bytes`, or leave `stop` out"}});
    }
    Warmup(random.warmup(), stop.duration());
    FitsMeasure("stop.duration", random.warmup(), stop.duration());
  }

  void SyncPages(const v1::SyncPagesWorkload& pages) {
    BlockFits("size", pages.size(), pages.file());
    if (pages.direct()) {
      DirectUnit("size", pages.size());
      DirectUnit("file", pages.file());
    }
    Warmup(pages.warmup(), pages.duration());
    FitsMeasure("duration", pages.warmup(), pages.duration());
  }

  void Files(const v1::FilesWorkload& files) {
    if (files.clients() > files.files()) {
      Report("clients", {"LR324",
                         std::to_string(files.clients()) + " clients share " +
                             std::to_string(files.files()) + " files; some would have none",
                         "",
                         {},
                         {"ask for fewer clients or more files"}});
    }
    std::set<int> seen;
    for (int i = 0; i < files.steps_size(); ++i) {
      if (seen.insert(files.steps(i)).second) continue;
      Report("steps[" + std::to_string(i) + "]",
             {"LR324", "a step is listed twice", "", {}, {"list each step once"}});
    }
  }

  void Fio(const v1::FioWorkload& fio) {
    CommandFitsMeasure(fio.timeout());
    const bool from_file = !fio.job_file().empty();
    if (fio.job().empty()) {
      // The loader reports a job file that is not there.
      if (!from_file) {
        Report("job", {"LR330",
                       "a fio workload needs a job",
                       "",
                       {},
                       {"give the job's text as `job`, or its file as `job_file`"}});
      }
      return;
    }
    const FioJobFile file = ParseFioJob(fio.job());
    for (const FioFinding& finding : file.problems) {
      std::vector<std::string> notes;
      if (finding.line > 0) {
        notes.push_back("line " + std::to_string(finding.line) +
                        (from_file ? " of " + fio.job_file() : " of the job"));
      }
      Report(from_file ? "job_file" : "job",
             {"LR332", finding.message, "", std::move(notes), {finding.help}});
    }
  }

  void Exec(const v1::ExecWorkload& exec) {
    CommandFitsMeasure(exec.timeout());
    if (exec.command_size() > 0 && exec.command(0).empty()) {
      Report("command", {"LR334",
                         "the command has no program",
                         "",
                         {},
                         {"name the program first, as in `[tar, xf, /srv/linux.tar]`"}});
    }
    for (const v1::ExecFigure& figure : exec.figures()) Figure(figure);
  }

  // By the engine and the options that workers read output with (agent/workload/figures.cc).
  void Figure(const v1::ExecFigure& figure) {
    const std::string field = "figures." + figure.name() + ".match";
    RE2::Options options;
    options.set_log_errors(false);
    const RE2 expression(figure.match(), options);
    if (!expression.ok()) {
      Report(field, {"LR335",
                     "this is no regular expression",
                     expression.error(),
                     {"RE2's rules hold, which have no look-ahead and no back-references"},
                     {"write `\\` before a `(`, `[`, `.` or `\\` that stands for itself"}});
    } else if (expression.NumberOfCapturingGroups() < 1) {
      Report(field, {"LR335",
                     "the regular expression has no group for the number",
                     "",
                     {},
                     {"put the number in parentheses, as in `([0-9.]+) MB/s`"}});
    }
  }

  const LoadedPlaybook& playbook_;
  const ExpandedCell& cell_;
  Reporter& reporter_;
  const std::string path_;
};

// The field of the stack that asks for many disks.
std::string ProfilePath(const v1::Stack& stack) {
  const std::string path = "stacks." + stack.name() + ".host." + StackKind(stack);
  if (stack.host().has_zfs()) return path + ".layout";
  if (!stack.host().has_btrfs()) return path;
  return path + (NeedOf(stack).what.find("data profile") != std::string::npos
                     ? std::string(".data")
                     : std::string(".metadata"));
}

void CheckDirectory(const LoadedPlaybook& playbook, const v1::Stack& stack, Reporter& reporter) {
  const std::string& path = stack.host().dir().path();
  if (path.empty()) return;
  const bool upwards = (path + "/").find("/../") != std::string::npos;
  if (path.starts_with('/') && !upwards) return;
  reporter.Add(playbook.Find("stacks." + stack.name() + ".host.dir.path"),
               {"LR342",
                "`" + path + "` is no absolute directory without `..`",
                "",
                {},
                {"write the whole path from `/`, or leave `path` out"}});
}

// Disks that are written from end to end before each trial, against the time there is for it.
void CheckPreparation(const LoadedPlaybook& playbook, const ExpandedCell& cell,
                      Reporter& reporter) {
  const Nanoseconds limit(playbook.playbook.timeouts().build());
  const Nanoseconds takes = EstimatePreparationTime(cell.stack, cell.disks);
  if (limit == Nanoseconds(0) || takes <= limit) return;
  const Nanoseconds minutes = std::chrono::ceil<std::chrono::minutes>(takes);
  const bool written =
      playbook.places.contains("disks.size") || playbook.places.contains("disks.count");
  reporter.Add(
      playbook.Find(written ? "disks.size" : "timeouts.build"),
      {"LR325",
       "writing " + Count(cell.disks.count(), "disk") + " of " +
           FormatBytesExact(Bytes(cell.disks.size())) + " from end to end takes " +
           FormatDurationExact(minutes) + ", and `timeouts.build` is " + FormatDurationExact(limit),
       "",
       {"disks are taken to write " +
        FormatBytes(Bytes(static_cast<std::uint64_t>(kAssumedDisk.stream_bytes_per_second))) +
        " per second"},
       {"raise `timeouts: {build: " + FormatDurationExact(minutes) +
        "}` or more, or set `disks: {prepare: allocated}`"}});
}

}  // namespace

void CheckWorkload(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter) {
  WorkloadCheck(playbook, cell, reporter).Run();
}

void CheckStack(const LoadedPlaybook& playbook, const ExpandedCell& cell, Reporter& reporter) {
  const v1::Stack& stack = cell.stack;
  if (!CheckStackChoice(playbook, cell, reporter)) return;
  if (stack.host().has_dir()) return CheckDirectory(playbook, stack, reporter);
  if (stack.has_volume() && !CheckVolume(playbook, cell, reporter)) return;
  const DiskNeed need = NeedOf(stack);
  const std::uint32_t count = cell.disks.count();
  if (count < need.count || (need.even && count % 2 != 0)) {
    reporter.Add(
        playbook.Find(ProfilePath(stack)),
        {"LR340",
         need.what + " needs " + (need.even ? "an even number of disks, " : "") + "at least " +
             (need.even ? std::to_string(need.count) : Count(need.count, "disk")) + "; there " +
             (count == 1 ? "is 1" : "are " + std::to_string(count)),
         "",
         {},
         {"set `disks: {count: " +
          std::to_string(std::max(need.count, count + (need.even ? count % 2 : 0))) + "}`"}});
    return;
  }
  if (Bytes(cell.disks.size()) < need.size) {
    reporter.Add(
        playbook.Find("disks.size"),
        {"LR341",
         "stack `" + stack.name() + "` needs disks of at least " + FormatBytesExact(need.size) +
             "; they are " + FormatBytesExact(Bytes(cell.disks.size())),
         "",
         {stack.has_volume() ? std::string("logs and a few lines of data need as much")
                             : StackKind(stack) + "'s own tool refuses smaller ones"},
         {"set `disks: {size: " + FormatBytesExact(need.size) + "}` or more"}});
    return;
  }
  CheckPreparation(playbook, cell, reporter);
  const Bytes footprint = EstimateWork(cell.workload).footprint;
  const Bytes usable = UsableBytes(stack, cell.disks);
  if (footprint <= usable) return;
  reporter.Add(
      playbook.FindKey("workloads." + cell.workload.name()),
      {"LR322",
       "the files of `" + cell.workload.name() + "` do not fit on stack `" + stack.name() + "`",
       "",
       {"they take " + FormatBytes(footprint) + "; the disks hold about " + FormatBytes(usable) +
        " of data (" + Count(count, "disk") + " of " + FormatBytesExact(Bytes(cell.disks.size())) +
        ", less redundancy" + (stack.has_volume() ? " and logs)" : " and a tenth)")},
       {"use larger `disks`, or smaller files"}});
}

void CheckHosts(const LoadedPlaybook& playbook, Reporter& reporter) {
  const v1::Hosts& hosts = playbook.playbook.hosts();
  if (hosts.max() == 0 || hosts.min() <= hosts.max()) return;
  reporter.Add(playbook.Find("hosts.max"),
               {"LR343",
                "at most " + std::to_string(hosts.max()) + " hosts are used, but at least " +
                    std::to_string(hosts.min()) + " are asked for",
                "",
                {},
                {"make `max` at least as large as `min`"}});
}

}  // namespace labrack::plan
