// JSON of reports and lists. A report is published as
//   {"schema": "labrack.report", "schema_version": 1, "report": {...}}
// with the fields of v1::Report under their names in control.proto (report.schema.json describes
// it). Fields are in the order of the proto; numbers are numbers, also those of 64 bits; a value
// that is not there is absent or, for figures that could not be computed, null, never 0.
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "labrack/v1/control.pb.h"

namespace labrack::report {

constexpr int kReportSchemaVersion = 1;

std::string FormatJson(const v1::Report& report);
// Everything about a run, raw: {"schema": "labrack.run", "schema_version": 1, "run": {...}}.
std::string FormatRunJson(const v1::RunRecord& run);
// Any message of a list (ListRunsReply, HostsReply, Plan) as one JSON object with all its fields,
// for --json; `schema` names it: {"schema": "labrack.runs", "schema_version": 1, ...}.
std::string FormatMessageJson(const std::string& schema, const google::protobuf::Message& message);

}  // namespace labrack::report
