// The one declaration per field, put to work. Messages that people write carry (field), (about) and
// (choice) options (labrack/v1/field.proto); everything here walks their descriptors:
//   Bind       YAML tree -> message, with all problems at their places and defaults filled in
//   Check      bounds of a message that came over the wire (the same rules, without places)
//   SchemaJson, ReferenceMarkdown, Explain, FieldPaths   for editors, docs and people
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/message.h>

#include "storage/base/config/source.h"
#include "storage/base/config/tree.h"

namespace labrack::fields {

// Where each field that was written stands: path -> span of its value, so that later checks
// (cross-field, fleet) point at the right place. Keys of mappings are under "PATH#key". Names of
// keyed fields are parts of the path ("workloads.pages.sync_pages.size", "vars.size"), items of
// lists are numbered from 0 ("gates[0].faster", "matrix.block[1]"), and the whole is "".
using Places = std::map<std::string, config::Span>;

// Fills `message`, which is emptied first, from `node`. Unknown fields (with the nearest valid
// name), wrong kinds, values out of bounds, missing required fields and, in one-of messages, none
// or several keys are problems; all are collected. A wrong parent mutes its children. True when it
// added no problem.
//
// Fields left out get their defaults. A message left out is made with its defaults where some field
// in it has one, none is required, and it is no one-of (Disks, Hosts, PhaseTimeouts); otherwise it
// stays absent (TlsFiles, StopRule, GateVerified). In a message that is made, values without a
// default stay zero, which means "not written" everywhere.
bool Bind(const config::Document& document, const config::Node& node,
          google::protobuf::Message& message, Places& places, config::Problems& problems);

// Problems of a message from elsewhere, as "PATH: what is wrong" texts; empty when it is right. The
// rules are Bind's, but zero counts as not written where the field has no default. At most
// kCheckedMax problems; one more line then says that there are more.
constexpr std::size_t kCheckedMax = 50;
std::vector<std::string> Check(const google::protobuf::Message& message);

// Fills in the defaults, as Bind does. A zero value counts as not set (proto3 cannot tell), so call
// it on a new message and set your values afterwards: filling a message where `direct` was set to
// false would make it true again.
void FillDefaults(google::protobuf::Message& message);

// A value as YAML would write it: "4KiB", "3%", "true", "[a, b]", "{min: 1}".
std::string FormatField(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field);

// JSON Schema, draft-07, of a message.
std::string SchemaJson(const google::protobuf::Descriptor& root, std::string_view title);
// Markdown tables of every field.
std::string ReferenceMarkdown(const google::protobuf::Descriptor& root);
// Text for `labrack explain PATH` ("workloads.*.random.block", "workloads.pages.random.block",
// "random.block", "block"); where several fields end in PATH it lists them. nullopt when none does.
std::optional<std::string> Explain(const google::protobuf::Descriptor& root, std::string_view path);
// All paths, with "*" for names, for completion and suggestions.
std::vector<std::string> FieldPaths(const google::protobuf::Descriptor& root);

// Reads a daemon's configuration file into a v1::ControllerConfig or v1::AgentConfig. False when
// there are problems: print config::RenderAll(problems, text, ...), where `text` is the file's
// content.
bool LoadConfigFile(const std::string& path, google::protobuf::Message& message,
                    config::Problems& problems, std::string& text);

}  // namespace labrack::fields
