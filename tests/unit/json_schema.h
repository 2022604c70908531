// The part of JSON Schema that we generate: a validator of its own, so that what we publish is held
// against what we write. A keyword that it does not know fails the test.
#pragma once

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace labrack {

class JsonSchema {
 public:
  // Members that the schema does not name: as its `additionalProperties` says, or always wrong.
  enum class Unnamed { kAsItSays, kWrong };
  explicit JsonSchema(nlohmann::json root, Unnamed unnamed = Unnamed::kAsItSays)
      : root_(std::move(root)), unnamed_(unnamed) {}

  // The first thing wrong with `value`, with its place; empty: nothing.
  std::string FirstFault(const nlohmann::json& value) const { return Validate(root_, value, ""); }

 private:
  using Json = nlohmann::json;
  std::string Validate(const Json& schema, const Json& value, const std::string& path) const;
  std::string ValidateArray(const Json& schema, const Json& value, const std::string& path) const;
  std::string ValidateObject(const Json& schema, const Json& value, const std::string& path) const;

  Json root_;
  Unnamed unnamed_;
};

}  // namespace labrack
