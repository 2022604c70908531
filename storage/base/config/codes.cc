// Every problem code, with what `labrack explain CODE` says. A code keeps its meaning for ever; a
// new kind of problem gets a new number. LR1xx: files and syntax. LR2xx: fields of one value.
// LR3xx: fields against each other, and expansion. LR4xx: the fleet against the playbook, at
// planning. LWxxx: reasons to read a result with care.
#include <iterator>

#include "storage/base/config/source.h"

namespace labrack::config {
namespace {

constexpr CodeText kCodes[] = {
    {"LR101", "the file cannot be read",
     "The file does not exist, is no file, or may not be read by this user."},
    {"LR102", "the file is too large",
     "Files are read up to 1 MiB. A playbook of that size is generated or is the wrong file."},
    {"LR103", "a character does not belong in the file",
     "Files are UTF-8 text without control characters, line breaks that only some programs see, "
     "and characters that change the direction of text: what is shown must be what is read."},
    {"LR104", "the file is empty", "There is nothing but comments, if at all."},
    {"LR105", "this is not YAML",
     "The text breaks a rule of YAML, so that nothing after this place can be trusted. Reading "
     "stops here: mend this one, then the rest is checked."},
    {"LR106", "a quoted text is not closed",
     "A text that begins with a quote ends with the same quote. Within '...' a quote is written "
     "twice, within \"...\" it is written \\\"."},
    {"LR107", "a bracket is not closed",
     "A list in [ ] or a mapping in { } does not end. The place shown is the opening bracket."},
    {"LR108", "a tab between the parts of a line",
     "Tabs have different widths in different editors, and YAML's structure is indentation. "
     "Within quoted texts, text blocks and comments they may stand."},
    {"LR109", "a second document",
     "A line `---` begins a second document. One file is one document; a second one would be "
     "dropped in silence, so it is refused."},
    {"LR110", "anchors, aliases and merge keys are not taken",
     "`&name`, `*name` and `<<` hide what a line really says, and a few of them can stand for "
     "millions of values. `vars:` and `matrix:` name values instead. A text that begins with & "
     "or * is put in quotes."},
    {"LR111", "tags are not taken",
     "`!tag` would choose how a value is read. Here the field chooses: `size: 4KiB` is a size "
     "and `name: 4KiB` a text. A text that begins with ! is put in quotes."},
    {"LR112", "directives are not taken",
     "Lines that begin with % (`%YAML`, `%TAG`) have no use here."},
    {"LR113", "a key is written twice",
     "The same key stands twice in one mapping. Which of the two counts would be a guess."},
    {"LR114", "this cannot be a key", "A key is one word: not empty, no spaces, no list."},
    {"LR115", "values are nested too deep",
     "Values are read up to 32 levels deep. Mostly this is a bracket that is not closed."},
    {"LR116", "the file holds too many values",
     "A file is read up to 100 000 values. A `matrix:` makes many cells of few lines."},
    {"LR201", "the value has the wrong shape",
     "A mapping (`key: value` lines), a list (`- item` lines) or a single value stands where the "
     "field takes another of these. `labrack explain FIELD` shows the field."},
    {"LR202", "the value is missing",
     "Nothing stands after the `:`. Write a value, `{}` for a mapping that is all defaults, "
     "\"\" for an empty text, or leave the line out."},
    {"LR203", "unknown field",
     "No field of this name exists at this place. Unknown fields are refused, since a misspelt "
     "option that is dropped in silence makes a wrong measurement."},
    {"LR204", "a field is missing", "A field that has no default must be written."},
    {"LR205", "exactly one of several must be written",
     "Some mappings choose one of several kinds, as `host: {ext4: {}}` does. They hold exactly "
     "one key."},
    {"LR206", "the value cannot be read",
     "The field decides how its value is read. Whole numbers are decimal digits; truth is `true` "
     "or `false`; sizes take B, KiB, MiB, GiB, TiB (1024) or kB, MB, GB, TB (1000); times take "
     "ns, us, ms, s, min, h; shares end in %; factors end in x. What could be read in two ways, "
     "as 4k, is refused."},
    {"LR207", "the value is out of bounds",
     "Nothing is clamped in silence: a value beyond the field's bounds is an error."},
    {"LR208", "unknown choice", "The field takes one of a few words."},
    {"LR209", "the text has the wrong form",
     "Names must follow a pattern, so that they can be parts of paths, labels and ids."},
    {"LR210", "too few or too many items", "The list or mapping has bounds on its length."},
    {"LR301", "a name is not defined",
     "`${name}` stands for a variable of `vars` or an axis of `matrix`. Names that are neither "
     "are "
     "errors, never empty texts."},
    {"LR302", "a name stands where names are not replaced",
     "`${name}` is replaced in the values of `stacks`, `workloads` and `disks`, once: values "
     "that "
     "are put in are not looked at again. Other fields are changed by `--set FIELD=VALUE`."},
    {"LR303", "--set does not name anything",
     "KEY of `--set KEY=VALUE` is the name of a variable or an axis, or the path of a field, as "
     "`trials` or `workloads.copy.copy.file`. An option changes what the playbook has; it never "
     "adds stacks, workloads, variables or axes."},
    {"LR304", "a name is written wrongly",
     "`${` begins a name of lower-case letters, digits and `_`, and `}` ends it. A plain `${` is "
     "written `$${`."},
    {"LR305", "an axis of the matrix is of no use",
     "An axis that nothing uses makes no cells, a value written twice would make the same cells "
     "twice, and a name that is a variable too could mean either."},
    {"LR306", "too many cells",
     "Stacks, workloads and the values of the axes that they use multiply. A run has at most "
     "10 000 cells."},
    {"LR307", "an item of include or exclude is of no use",
     "An item that says nothing, or that no cell matches, is a misunderstanding. A cell has only "
     "those axes that its stack, its workload or its disks use."},
    {"LR308", "no cell is left", "`include` and `exclude` leave nothing to run."},
    {"LR310", "no stack, workload, step, axis or value of this name",
     "Gates, `base`, `include` and `exclude` name parts of the playbook. A workload of several "
     "steps is named with the step, as WORKLOAD/STEP."},
    {"LR311", "a gate has the wrong form",
     "A gate is one claim: {faster, than, on, by}, {not_slower, than, on, within}, {same, as, "
     "on, "
     "within}, {verified} or {latency, on, percentile, below}, each with `host` if it is about "
     "one host. `by`, `within`, `percentile` and `host` may be left out."},
    {"LR312", "a stack is compared with itself", "Such a gate says nothing."},
    {"LR320", "direct I/O needs whole blocks",
     "Past the page cache (O_DIRECT) offsets and lengths must be multiples of the disk's block; "
     "4 KiB is right on every disk."},
    {"LR321", "a block is larger than its file", "Not one operation could be done."},
    {"LR322", "the data does not fit on the disks",
     "The files of a workload are held against the size of the disks, less what redundancy takes "
     "and a tenth for the file system itself."},
    {"LR323", "the times of a workload do not fit together",
     "A warm-up is shorter than the measurement after it, and a stop rule says when to stop."},
    {"LR324", "a workload's counts do not fit together",
     "Every client has something to do, and every step is listed once."},
    {"LR325", "a limit of time is too short for the work",
     "Each trial would run into its limit and give no result. Warm-up, measurement and a command's "
     "`timeout` are held against `timeouts.measure`; writing the disks from end to end, at the "
     "speed that plans assume, against `timeouts.build`. Raise the limit, ask for less, or leave "
     "the disks unwritten with `prepare: allocated`."},
    {"LR330", "a fio workload has exactly one job",
     "The job is given as text (`job`) or as a file (`job_file`)."},
    {"LR331", "a job file cannot be read",
     "Job files are read together with the playbook, relative to its directory, and travel with "
     "it. Absolute paths, and `..` and symbolic links that lead out of the directory, are refused: "
     "a playbook must not send files along that do not belong to it."},
    {"LR332", "a fio job that is not run",
     "The text is no job file, names two jobs alike, or reaches outside of the stack's "
     "directory: "
     "absolute paths, `..` and environment variables in file names could hit a disk that is not "
     "ours."},
    {"LR334", "a command without a program", "The first word of `command` is the program."},
    {"LR335", "a regular expression for a figure is wrong",
     "`match` is a regular expression as RE2 reads it; its first group, in parentheses, is the "
     "number."},
    {"LR340", "too few disks for the stack", "Profiles and layouts need a number of disks."},
    {"LR341", "the disks are too small for the stack",
     "The stack's own tool refuses to make a file system of that size."},
    {"LR342", "a directory is not absolute",
     "`path` of a `dir` stack is a whole path from `/`, without `..`; the agent's configuration "
     "must allow it too."},
    {"LR343", "bounds are the wrong way round", "`min` is at most `max`."},
    {"LR344", "a stack is of one kind",
     "A stack has `host` (the host's own kernel or directories) or `volume` (a volume of our own "
     "storage core), one of them. `queue` says how I/Os wait below a volume."},
    {"LR345", "a queue's limit without its policy",
     "`pending_max` limits what is at a disk under `policy: legacy`. The classes have limits of "
     "their own, and without a queue there is none."},
    {"LR346", "an interlace that is no multiple of the sector",
     "A volume deals whole sectors to its disks."},
    {"LR347", "a workload that needs a file system",
     "A bare volume holds blocks. Workloads on one large file run on it as on a disk; those that "
     "make many files, copy them, or run programs need a file system."},
    {"LR348", "modelled disks in the wrong place",
     "`disks: {model}` makes disks out of arithmetic, in virtual time. Only stacks of our own core "
     "can live in that time; and nothing is lent or written for them."},
    {"LR350", "an agent needs certificates to reach another machine",
     "On any address but loopback the agents' port takes TLS with certificates of both sides only. "
     "`tls` in the agent's configuration names them."},
    {"LR401", "too few hosts",
     "Fewer hosts are online and have the labels asked for than `hosts.min` says. The notes say "
     "of every other host why it does not count."},
    {"LR402", "a stack cannot be built on a host",
     "The host lacks a tool, a kernel feature or a right. `if_unsupported` says whether the "
     "stack "
     "is left out there (`skip`) or a plain directory stands in for it (`directory`)."},
    {"LR403", "a host has no room for the disks of a trial",
     "Each trial makes its disks anew, in the space that the agent lends. Agents of one machine "
     "share it."},
    {"LR404", "a host does not allow commands",
     "`exec` workloads, and options of fio jobs that run commands, need `allow_exec: true` in "
     "the "
     "agent's configuration. No playbook can override that."},
    {"LR405", "a host does not allow the directory",
     "`dir` stacks work in directories that the agent's configuration lists in `directories`."},
    {"LR406", "disks are refused by disk safety",
     "A disk that might hold somebody's data is refused, and no playbook can override that."},
    {"LR407", "nothing would run", "Every stack is skipped on every host."},
    {"LR408", "too many trials", "A run has at most 100 000 trials over all cells."},
    {"LR409", "a gate is about a host that does not take part",
     "`host` of a gate is the id of an agent of the plan."},
    {"LR410", "the base would be run nowhere",
     "Every other stack is compared with `base`. Where it is skipped on all hosts, or left out by "
     "`include` or `exclude`, nothing would be compared, and the run would pass all the same."},
    {"LR411", "a host is not clean",
     "An earlier trial has left a mount, a device or a process there that its agent cannot undo, "
     "since somebody uses it or it hangs in the kernel. What is measured beside it would not "
     "count, so the agent refuses trials (DIRTY_HOST) and tries again until the host is clean. "
     "`labrack host show` says what is left."},
    {"LW101", "reads were answered by memory",
     "The workload read more than the devices below were asked for, so memory answered. With "
     "`direct: true`, `cache: cold`, or files larger than memory, the disks are measured."},
    {"LW102", "reads may have been answered by memory",
     "The files fit into the host's memory and were read through the page cache. The figures "
     "may be those of memory. Set `direct: true` or `cache: cold`, or make the files larger."},
    {"LW103", "writes were not made durable",
     "Nothing in the measured time waited for the disks, so memory took the writes as long as it "
     "had room. Stacks that hold back more look faster. Set `sync`, `fsync` or `direct`."},
    {"LW104", "zeros were written",
     "Stacks that compress, or that leave holes for zeros, write next to nothing then. Set "
     "`data: random` to measure what real data takes."},
    {"LW105", "more clients than processors",
     "Clients wait for a processor, and their latencies hold that time. Throughput may still be "
     "right; latencies are to be read with care."},
    {"LW106", "the load was behind its schedule",
     "An open loop (`rate`) offered more operations than were done, so response times hold the "
     "queue that grew until the end. Lower `rate`, or add clients where the stack has room."},
    {"LW107", "clients waited for their data",
     "Data is made beside the clients that write it, where there are two processors for each of "
     "them; elsewhere, or where the stack is faster than a processor makes data, clients wait for "
     "it. The stack was idle then, and is faster by up to the share named. Use a host with two "
     "processors for each client, or compare stacks whose shares are alike."},
    {"LW201", "the hosts did not measure together",
     "The measured windows of the hosts overlap too little. The rate over all hosts is taken from "
     "the time in which all were measuring, so it stands on a short part of the work. Give the "
     "workload a duration instead of a size, so that all hosts end together."},
    {"LW202", "a host started away from the common instant",
     "All hosts were told to start at one instant, and one started more than 5 ms away from it. "
     "Look at the load of that host and at the round trip to it (`labrack host show`)."},
    {"LW203", "a clean-up failed",
     "The measurement is good, but a mount, a loop device or a file was left on the host. The "
     "agent tries again when it starts."},
    {"LW204", "a directory stood in for a stack",
     "The host cannot build the stack and the playbook says `if_unsupported: directory`. The "
     "figures are those of the host's own file system, not of the stack named."},
    {"LW205", "the environments differ",
     "Kernel, processor, governor, memory or tools differ between hosts or between the two runs. "
     "A difference in the figures may be one of the machines. The lines `environment:` say which."},
    {"LW206", "a host was rebooted in the run",
     "Trials before and after a reboot ran in different circumstances. Run it again."},
    {"LW207", "all times are virtual",
     "The disks were modelled and time was the model's. Compare such runs with each other only."},
    {"LW208", "too many hosts for rows of their own",
     "With more than 64 hosts, only rows over all hosts are made. `labrack export RUN --as csv` "
     "has every host."},
    {"LW209", "two runs were not interleaved",
     "Within a run the stacks take turns, so drift hits all alike. Two runs stood apart: time of "
     "day, fill level and state of the hosts differ, and the intervals do not hold that. For a "
     "fair comparison put both stacks into one playbook."},
    {"LW210", "stacks of one name differ between two runs",
     "Options or the kind of a stack were changed in between. That may be what is tested; the "
     "lines `environment:` say what it was."},
    {"LW211", "two runs have no cell in common",
     "Cells are compared when stack, workload and parameters have the same names, and the "
     "workload and the disks are the same in all their fields."},
    {"LW302", "writes were not on the devices yet",
     "Less than half of what the step wrote had reached the devices below when the measurement "
     "ended. Set `sync: end` or `direct: true`, unless compression or overwriting explains it."},
    {"LW303", "the host was busy with something else",
     "While a step was measured, programs other than the trial's own used a good part of the "
     "host's processor time, so the figures are not the stack's alone. Keep other work off the "
     "host while a run goes on."},
    {"LW304", "details of the trial were lost",
     "The file system of the agent's state directory had no room for them. The result itself is "
     "whole. Make room there."},
    {"LW305", "the cache was not cold",
     "`cache: cold` was asked for, but memory could not be emptied of what the workload reads. A "
     "directory on the host's own file system (`dir`, or a stand-in) allows it for file data "
     "only, and tmpfs, ZFS and network file systems not even that. Use `direct: true`, files "
     "larger than memory, or a stack with disks of its own."},
};

}  // namespace

const std::vector<CodeText>& AllCodes() {
  static const std::vector<CodeText> codes(std::begin(kCodes), std::end(kCodes));
  return codes;
}

}  // namespace labrack::config
