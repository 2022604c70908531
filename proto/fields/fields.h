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

// Where each field that was written stands: path ("workloads.pages.sync_pages.size") -> span of its
// value, so that later checks (cross-field, fleet) point at the right place. Keys of mappings are
// under "PATH#key".
using Places = std::map<std::string, config::Span>;

// Fills `message` from `node`. Unknown fields (with the nearest valid name), wrong kinds, values
// out of bounds, missing required fields and, in one-of messages, none or several keys are
// problems; all are collected. A wrong parent mutes its children. Fields left out get their
// defaults.
bool Bind(const config::Document& document, const config::Node& node,
          google::protobuf::Message& message, Places& places, config::Problems& problems);

// Problems of a message from elsewhere, as "PATH: what is wrong" texts; empty when it is right.
std::vector<std::string> Check(const google::protobuf::Message& message);

// Fills in every default that is not set, as Bind does.
void FillDefaults(google::protobuf::Message& message);

// A value as YAML would write it: "4KiB", "3%", "true".
std::string FormatField(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field);

// JSON Schema, draft-07, of a message.
std::string SchemaJson(const google::protobuf::Descriptor& root, std::string_view title);
// Markdown tables of every field.
std::string ReferenceMarkdown(const google::protobuf::Descriptor& root);
// Text for `labrack explain PATH` ("workloads.*.random.block", "random.block", "block" where it is
// unambiguous); nullopt when there is no such field.
std::optional<std::string> Explain(const google::protobuf::Descriptor& root, std::string_view path);
// All paths, with "*" for names, for completion and suggestions.
std::vector<std::string> FieldPaths(const google::protobuf::Descriptor& root);

}  // namespace labrack::fields
