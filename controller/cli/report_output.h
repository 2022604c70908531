// A report on its way out: the table on standard output, and files for other programs.
#pragma once

#include <string>
#include <vector>

#include "controller/cli/verb.h"
#include "labrack/v1/control.pb.h"

namespace labrack::cli {

// --json, --junit, --markdown and --strict.
std::vector<Option> WithReportOptions(std::vector<Option> options);
bool WantsReportFiles(const Call& call);
// Before anything is done for them: at most one of them goes to standard output, and the others
// can be made where they are to be.
Result<void> CheckReportFiles(const Call& call);

// Prints the table and writes the files that the options ask for; "-" puts one of them on standard
// output in the table's place. The exit code is the report's, or 5 when a file cannot be written.
// `playbook`: its file, where it is known, for the commands that lead on.
ExitCode PutOutReport(const Call& call, const v1::Report& report, const std::string& playbook = {});

// Writes the same files where there is no report, with what the voice gave as reasons: a CI shows
// why, instead of no file or the one of yesterday.
void PutOutFailure(const Call& call, const v1::RunSummary& run, ExitCode code);

// Writes them of an ended run whose table could not be made, with the verdict that it has.
void PutOutSummary(const Call& call, const v1::RunSummary& run, ExitCode code, const Error& why);

}  // namespace labrack::cli
